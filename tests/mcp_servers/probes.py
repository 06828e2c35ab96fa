"""Python that tries to tell what it read, in every way that a sandbox leaves open: drawn from a seed, a family each.

Every probe reads a measurement of the panel (`MEASURES`) and sends it out through a channel (`CHANNELS`). The
measurements are those in which a later day could show: ratios to the quoted close, levels, counts of columns, hashes of
all bytes, memory behind the arrays. The text in `{m}` is the expression, `{k}` a number of the probe's own.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from textwrap import dedent, indent

__all__ = ["CHANNELS", "MEASURES", "OTHERS", "probes"]

MEASURES: Mapping[str, str] = {
    "ratio_first": "(raw / close).iloc[0].to_list()",
    "ratio_last": "(close / raw).iloc[-1].to_list()",
    "ratio_all": "hash((close / raw).to_numpy().tobytes())",
    "all_bytes": "[hash(panel[name].to_numpy().tobytes()) for name in panel]",
    "close_bytes": "hash(close.to_numpy().tobytes())",
    "return_bits": "hash(panel['returns'].to_numpy().tobytes())",
    "volume_bits": "hash(panel['volume'].to_numpy().tobytes())",
    "volume_grid": "np.gcd.reduce(np.nan_to_num(panel['volume'].iloc[:, {k} % 20].to_numpy()).astype(int))",
    "money": "(panel['amount'] / panel['volume'] / raw).iloc[{k}].to_list()",
    "vwap": "(panel['vwap'] / raw).iloc[-1].to_list()",
    "cap": "(panel['cap'] / raw).iloc[-1].to_list()",
    "shape": "close.shape",
    "columns": "list(close.columns)",
    "last_day": "str(close.index[-1])",
    "sectors": "sorted(set(panel['sector'].to_numpy().ravel().tolist()), key=str)",
    "members": "int(panel['universe'].to_numpy().sum())",
    "empty": "int(close.isna().all().sum())",
    "usage": "int(close.memory_usage(deep=True).sum())",
    "address": "close.to_numpy().__array_interface__",
    "strides": "(close.to_numpy().strides, str(close.to_numpy().flags), close.to_numpy().base is None)",
    "behind": (
        "np.lib.stride_tricks.as_strided(close.to_numpy(), (close.shape[0] + {k}, close.shape[1]))"
        ".tobytes().hex()[-400:]"
    ),
    "before": "__import__('ctypes').string_at(close.to_numpy().ctypes.data - 4096, 4096).hex()[:400]",
    "later": "[float(x) for x in (close.iloc[row, 0] for row in range(len(close) - 2, len(close) + {k} % 2))]",
    "quantile": "float(np.nanquantile((raw / close).to_numpy(), {k} / 100))",
    "names": "[(name, panel[name].shape, str(panel[name].to_numpy().dtype)) for name in panel]",
}
CHANNELS: Mapping[str, str] = {
    "message": "raise ValueError({m})",
    "long_message": "raise ValueError(str({m}) * 2000)",
    "odd_letters": "raise ValueError('\\x1b[2J\\u202e\\ud800\\x00\\r\\n' + str({m}))",
    "type_name": "raise type('E' + str({m})[:60].replace(' ', '_'), (Exception,), {{}})()",
    "which_type": (
        "raise [KeyError, IndexError, TypeError, OSError, ZeroDivisionError, StopIteration][hash(str({m})) % 6]('x')"
    ),
    "which_line": "exec(compile('\\n' * (hash(str({m})) % 5000) + 'raise ValueError()', '<factor>', 'exec'))",
    "group": "raise ExceptionGroup(str({m}), [ValueError(str({m})), TypeError({k})])",
    "cause": "raise ValueError('outer') from ValueError({m})",
    "note": "error = ValueError('noted'); error.add_note(str({m})); raise error",
    "own_str": "raise type('Own', (Exception,), {{'__str__': lambda self: str({m})}})()",
    "own_repr": "raise ValueError(type('Own', (), {{'__repr__': lambda self: str({m})}})())",
    "broken_str": "raise type('Own', (Exception,), {{'__str__': lambda self: 1 // (hash(str({m})) % 2)}})()",
    "exit_text": "raise SystemExit(str({m}))",
    "exit_code": "raise SystemExit(hash(str({m})) % 256)",
    "hard_exit": "import os; os._exit(hash(str({m})) % 256)",
    "abort": "import os; (os.abort if hash(str({m})) % 2 else os._exit)(*([] if hash(str({m})) % 2 else [3]))",
    "interrupt": "raise KeyboardInterrupt({m})",
    "generator_exit": "raise GeneratorExit({m})",
    "printed": "print({m}); raise ValueError('printed')",
    "errors_stream": "import sys; sys.stderr.write(str({m})); sys.stdout.flush(); raise ValueError('written')",
    "warned": "import warnings; warnings.simplefilter('error'); warnings.warn(str({m}))",
    "wrong_kind": "return str({m})",
    "wrong_shape": "return close.iloc[: hash(str({m})) % len(close)]",
    "wrong_columns": (
        "out = close.copy(); out.columns = [str({m})[:40] + str(i) for i in range(out.shape[1])]; return out"
    ),
    "wrong_index": "out = close.copy(); out.index = out.index + pd.Timedelta(days=1 + hash(str({m})) % 9); return out",
    "object_columns": "out = close.astype(object); out.iloc[:, hash(str({m})) % out.shape[1]] = str({m}); return out",
    "infinite_cell": (
        "out = close * 0.0; out.iloc[hash(str({m})) % len(out), hash(str({m})) % out.shape[1]] = np.inf; return out"
    ),
    "nan_payload": "out = close.to_numpy().copy(); "
    "out.view('i8')[:] = 0x7ff8000000000000 + abs(hash(str({m}))) % 2**40; "
    "return pd.DataFrame(out, close.index, close.columns)",
    "a_constant": "return close * 0.0 + (hash(str({m})) % 1000)",
    "in_the_values": "return close.rank(axis=1) * (1 + (hash(str({m})) % 1000) * 1e-12)",
    "recursion": "f = lambda n: n if n <= 0 else f(n - 1); f(hash(str({m})) % 2 * 10**6); raise ValueError('back')",
    "memory": "x = bytearray((hash(str({m})) % 2) * (4 << 30)); raise ValueError(len(x))",
    "asks_the_time": "import time; time.time() if hash(str({m})) % 2 else None; raise ValueError('asked')",
    "opens_a_file": "open('/proc/self/maps' if hash(str({m})) % 2 else '/etc/hostname')",
    "starts": "import os; os.fork() if hash(str({m})) % 2 else os.getpid(); raise ValueError('forked')",
    "randomness": "import os; raise ValueError(os.urandom(4) if hash(str({m})) % 2 else 'none')",
    "unknown_field": "return panel['no' + str({m})[:80]]",
    "assertion": "assert False, {m}",
    "attribute": "getattr(close, 'a' + str({m})[:60].replace(' ', ''))",
    "key": "close.loc[str({m})]",
    "pandas_words": "close.reindex(columns=close.columns.tolist() * 2).loc[:, str({m})]",
    "numpy_words": "np.zeros(3).reshape(1 + abs(hash(str({m}))) % 10**6, 7)",
    "locals": "import sys; raise ValueError({{k: str(v)[:50] for k, v in sys._getframe().f_locals.items()}}, {m})",
    "frames_above": "import sys; raise ValueError([str(sys._getframe(i).f_locals)[:200] for i in range(3)], {m})",
    "collected": "import gc; raise ValueError(len(gc.get_objects()) >= 0, {m})",
    "looks_ahead": "n = -(1 + hash(str({m})) % 5); return close.shift(n) / close",
    "starts_late": (
        "n = 10 + hash(str({m})) % 20\n    if len(close) < n: raise ValueError({m})\n    return close.pct_change(5)"
    ),
    "not_twice": "out = close.pct_change(5); out.iloc[-1, 0] = id({m}) % 7; return out",
}
"""Statements: each ends the call, with the measurement in it."""
OTHERS = (
    "return -panel['returns'].rolling(20).std() * (1 + raw * 0)",
    "return close.pct_change({k} % 9 + 2) - raw.pct_change(40)",
    "return (panel['volume'] / panel['volume'].rolling({k} % 20 + 5).mean()) * (raw / raw.shift(3))",
    "return (panel['high'] - panel['low']).rolling({k} % 12 + 3).mean() / raw",
    "return raw.rank(axis=1)",
    "return close",
    "return close / raw",
    "return np.log(panel['cap']).diff({k} % 11 + 1)",
    "return (panel['vwap'] / close - 1).rolling({k} % 10 + 2).sum()",
    "return panel['amount'] / panel['volume'] / raw",
    "return panel['volume'].rank(axis=1)",
)
"""Factors that are honest, or read a level: some are scored."""
HEAD = "def factor(panel):\n    close, raw = panel['close'], panel['close_raw']\n"


def probes(count: int, seed: int = 0) -> list[str]:
    """Return `count` different probes, with channels and measurements balanced and combined by a seed."""
    rng = random.Random(seed)
    found = dict[str, None]()
    while len(found) < count:
        channels, measures = list(CHANNELS.values()), list(MEASURES.values())
        rng.shuffle(channels)
        for at, channel in enumerate(channels):
            number = rng.randrange(2, 60)
            measure = measures[(at + len(found)) % len(measures)].replace("{k}", str(number))
            found[_written(channel.replace("{k}", str(number)).replace("{m}", measure))] = None
        for text in rng.sample(OTHERS, 4):
            found[_written(text.replace("{k}", str(rng.randrange(2, 60))))] = None
    return list(found)[:count]


def _written(body: str) -> str:
    return HEAD + indent(dedent(body).replace("{{", "{").replace("}}", "}"), "    ").replace("        ", "    ") + "\n"
