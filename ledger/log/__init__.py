"""The transparency log of the ledger: each row is a leaf of a Merkle tree whose root is signed and can be witnessed.

The formats are those of C2SP: signed-note, tlog-checkpoint, tlog-cosignature, tlog-tiles, tlog-proof, tlog-policy and
tlog-witness. So a stranger's tools verify what this folder writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .checkpoint import Checkpoint as Checkpoint, CheckpointPolicy as CheckpointPolicy
    from .comparison import LogFinding as LogFinding
    from .export import (
        SignedLog as SignedLog,
        export_log as export_log,
        read_signed_log as read_signed_log,
        verify_export as verify_export,
    )
    from .keys import COSIGNED as COSIGNED, KeyFolder as KeyFolder
    from .note import (
        KIND_LOG as KIND_LOG,
        NoteError as NoteError,
        SignedNote as SignedNote,
        SigningKey as SigningKey,
        VerifierKey as VerifierKey,
        is_key_name as is_key_name,
        read_log_text as read_log_text,
    )
    from .proof import PROOF_SUFFIX as PROOF_SUFFIX, InclusionProof as InclusionProof, prove_row as prove_row
    from .reader import is_logged as is_logged, spell_path as spell_path
    from .upkeep.erasure import Erasure as Erasure, ErasureRecord as ErasureRecord, Mention as Mention
    from .upkeep.retirement import (
        add_second_key as add_second_key,
        choose_lost as choose_lost,
        replace_keys as replace_keys,
    )
    from .verification import LogReading as LogReading, OutsideCheckpoint as OutsideCheckpoint
    from .witness import (
        LogWitness as LogWitness,
        WitnessRefusal as WitnessRefusal,
        keep_cosigned as keep_cosigned,
        trust_log as trust_log,
    )
    from .workspace import read_call_heads as read_call_heads, verify_workspace as verify_workspace
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "checkpoint": "Checkpoint CheckpointPolicy",
            "comparison": "LogFinding",
            "upkeep.erasure": "Erasure ErasureRecord Mention",
            "export": "SignedLog export_log read_signed_log verify_export",
            "keys": "COSIGNED KeyFolder",
            "note": "KIND_LOG NoteError SignedNote SigningKey VerifierKey is_key_name read_log_text",
            "proof": "PROOF_SUFFIX InclusionProof prove_row",
            "reader": "is_logged spell_path",
            "upkeep.retirement": "add_second_key choose_lost replace_keys",
            "verification": "LogReading OutsideCheckpoint",
            "witness": "LogWitness WitnessRefusal keep_cosigned trust_log",
            "workspace": "read_call_heads verify_workspace",
        },
    )
