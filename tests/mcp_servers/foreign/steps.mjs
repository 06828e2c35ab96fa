// From a question to a verdict, as a client goes that has read nothing but what the servers say.

const QUESTION = "shape of the day's range";
const MISTAKEN = "rank(ts_kurt(hig / low, 30))";

/** The formula with the word that a refusal calls unknown replaced by the one that its hint names. */
function mended(text, { message, hint }) {
  const [, wrong] = /unknown \w+ '(\w+)'/.exec(message);
  const [, right] = /Did you mean (\w+)\?/.exec(hint);
  return text.replace(new RegExp(`\\b${wrong}\\b`), right);
}

/**
 * Go all the way; `call(server, tool, arguments)` answers with what a client was given.
 * What differs from run to run (handles, times) is left out, so that two clients' answers can be compared.
 */
export async function questionToVerdict(call) {
  const sound = async (server, tool, told) => {
    const answer = await call(server, tool, told);
    if (answer.isError) throw new Error(`${tool}: ${JSON.stringify(answer.structuredContent)}`);
    const text = JSON.parse(answer.content[0].text);
    if (JSON.stringify(text) !== JSON.stringify(answer.structuredContent)) throw new Error(`${tool}: text and structure differ`);
    return text;
  };

  const { fields } = await sound("market", "search_fields", { query: "price" });
  const refused = await sound("factors", "check_factor", { text: MISTAKEN });
  const text = mended(MISTAKEN, refused.errors[0]);
  const checked = await sound("factors", "check_factor", { text });
  const { similar } = await sound("factors", "find_similar", { text });
  const draft = await sound("factors", "register_factor", { text, name: QUESTION });
  const hypothesis = {
    id: "h1", mechanism: "range", statement: QUESTION, direction: 1, horizon_days: 5, fields: ["high", "low"],
  };
  const scored = await sound("evaluation", "score_factor", { text, hypothesis, key: "scored" });
  let job = await sound("evaluation", "stress_factor", { id: scored.id });
  while (job.status === "waiting" || job.status === "running")
    job = await sound("evaluation", "get_job", { job: job.job, wait_s: 20 });
  const gate = await sound("evaluation", "submit_to_gate", { ids: [scored.id], key: "submitted" });
  const wrong = await call("evaluation", "submit_to_gate", { key: "submitted" });
  return {
    fields: fields.map((field) => field.name), hint: refused.errors[0].hint, text, checked, similar,
    draft: draft.id, scored, job, verdicts: gate.verdicts,
    refused: { isError: wrong.isError, code: wrong.structuredContent.code, field: wrong.structuredContent.field },
  };
}
