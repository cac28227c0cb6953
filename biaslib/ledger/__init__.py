"""Every printed number and every claim of the four papers as a contract, and what meets it.

Three kinds of evidence stand beside a contract and are never mixed: whether it follows from what
the paper itself prints (:func:`reexamined`); what a recorded run says (:func:`verdicts`); and what
the planted world says of the measure, which is no evidence about any model.

>>> contracts("srinivasan2021")["kind"].value_counts().to_dict()
{'claim': 30, 'number': 4, 'open question': 3}
"""

from biaslib.ledger._contracts import (
    KINDS,
    LedgerError,
    checksum,
    contracts,
    families,
    limits,
    needs,
    printed,
)
from biaslib.ledger._discrimination import (
    claims_after_exchange,
    discrimination,
    other_columns,
    random_weights,
)
from biaslib.ledger._evidence import ANSWERS, Evidence, Finding, NoEvidenceError
from biaslib.ledger._numbers import Family, judge_list, judge_number
from biaslib.ledger._records import (
    RUNS,
    Comparison,
    Record,
    add,
    check,
    compare,
    content_hash,
    read,
    record,
    records,
)
from biaslib.ledger._runs import shrunk, tables_of_run
from biaslib.ledger._verdicts import CHECKS, VERDICTS, reexamined, standing, verdicts

__all__ = [
    "ANSWERS",
    "CHECKS",
    "KINDS",
    "RUNS",
    "VERDICTS",
    "Comparison",
    "Evidence",
    "Family",
    "Finding",
    "LedgerError",
    "NoEvidenceError",
    "Record",
    "add",
    "check",
    "checksum",
    "claims_after_exchange",
    "compare",
    "content_hash",
    "contracts",
    "discrimination",
    "families",
    "judge_list",
    "judge_number",
    "limits",
    "needs",
    "other_columns",
    "printed",
    "random_weights",
    "read",
    "record",
    "records",
    "reexamined",
    "shrunk",
    "standing",
    "tables_of_run",
    "verdicts",
]
