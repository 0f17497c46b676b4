"""The table of trec_eval's measures, and what a command line makes of it."""

from __future__ import annotations

import pytest

from cranfield.compat.trec_eval.names import NICKNAMES, ROWS, SPECS, TABLE, plan
from cranfield.compat.trec_eval.options import MeasureArgument, Options, parse_arguments
from cranfield.measures import CATALOGUE


def measures(*arguments: str) -> dict[str, list[str]]:
    """Printed name to our measures."""
    columns = plan(parse_arguments([*arguments, "qrels", "run"])).columns
    return {column.label: [str(measure) for measure in column.measures] for column in columns}


def test_every_measure_of_trec_eval_is_one_of_the_catalogue() -> None:
    assert {row.name for row in TABLE} - set(SPECS) == {"runid", "relstring"}
    assert {id(spec) for spec in SPECS.values()} <= {id(spec) for spec in CATALOGUE.values()}
    assert len(ROWS) == len(TABLE)


def test_every_name_the_catalogue_has_from_trec_eval_is_in_the_table() -> None:
    named = {name for spec in CATALOGUE.values() for name in (spec.trec_name, spec.trec_cut_name) if name}
    assert named <= set(ROWS)


def test_the_sets_of_measures_are_made_of_names_in_the_table() -> None:
    assert {name for names in NICKNAMES.values() for name in names} <= set(ROWS)
    # 10.0 has 37 in all_trec, 9.0.8 three fewer: no rbp, rbp_resid, unj.
    assert len(NICKNAMES["all_trec"]) == 37
    assert len(plan(Options(measures=(MeasureArgument("all_trec"),), version=9)).columns) < len(
        plan(Options(measures=(MeasureArgument("all_trec"),))).columns
    )
    assert len(NICKNAMES["all_prefs"]) == 16
    assert len(NICKNAMES["official"]) == 12


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-mmap"], {"map": ["AP"]}),
        (["-mmap", "-l2"], {"map": ["AP(rel=2)"]}),
        (["-mnum_ret", "-l2"], {"num_ret": ["NumRet"]}),  # all results, whatever their grade
        (["-mndcg", "-l2"], {"ndcg": ["nDCG"]}),
        (["-mndcg.1=3,2=9.5"], {"ndcg_1=3,2=9.5": ["nDCG(gains={1: 3, 2: 9.5})"]}),
        (["-mndcg_cut.10,5.7"], {"ndcg_cut_5": ["nDCG@5"], "ndcg_cut_10": ["nDCG@10"]}),
        (["-miprec_at_recall..5,0"], {"iprec_at_recall_0.00": ["IPrec@0"], "iprec_at_recall_0.50": ["IPrec@0.5"]}),
        (["-m11pt_avg"], {"11pt_avg": ["AP11"]}),
        (["-m11pt_avg.0.2,.8"], {"11pt_avg_0.2,.8": ["IPrec@0.2", "IPrec@0.8"]}),
        (["-mset_F.0.5"], {"set_F_0.5": ["SetF(beta=0.5)"]}),
        (
            ["-mutility.2,-1,0,0.5", "-N9"],
            {"utility_2,-1,0,0.5": ["Utility(found=2, spared=0.5, documents=9)"]},
        ),
        (["-mrbp"], {"rbp": ["RBP(p=0.9, depth=0)"]}),
        (["-mrbp.p=0.8"], {"rbp_p=0.8": ["RBP(depth=0)"]}),
        (["-mrelstring.3"], {"relstring_3": []}),
        (["-Rqrels_jg", "-mmap_avgjg", "-J", "-l2"], {"map_avgjg": ["APJudge(rel=2, own_list=True)"]}),
        (["-Rprefs", "-mprefs_simp", "-J", "-l2"], {"prefs_simp": ["Pref"]}),
        (["-mP.3", "-mmap", "-mP.9"], {"map": ["AP"], "P_3": ["P@3"]}),
    ],
)
def test_a_name_with_its_parameters_is_a_measure_of_ours(arguments: list[str], expected: dict[str, list[str]]) -> None:
    assert measures(*arguments) == expected


def test_measures_come_in_the_order_of_the_table_and_once() -> None:
    assert list(measures("-munj.5", "-mmap", "-mnum_q", "-m", "map")) == ["num_q", "map", "unj_5"]
