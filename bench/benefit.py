"""How often the analysis of a benefit experiment errs, and how often the wrong ways do.

    python bench/benefit.py [--simulations 4000] [--seed 17]

Experiments are simulated whose truth is known: tasks with a difficulty, an effect of the tool that differs from task to task, and
runs that succeed by chance. The estimates and the verdicts are those of the package. Prints the tables of
docs/explanation/benefit-statistics.md; the figures are per cent.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cranfield.benefit.analysis.estimates import mean_estimate, p_of_loss
from cranfield.benefit.analysis.verdict import VerdictEvidence, decide
from cranfield.benefit.plan import VerdictRule
from cranfield.benefit.result import Estimate, StratumVerdict
from cranfield.stats.paired import mcnemar
from cranfield.stats.ratio import ratio_difference

Floats = NDArray[np.float64]
ALPHA = 0.05
RULE = VerdictRule()
POPULATION = 400_000
"""Tasks from which the truth is computed."""


@dataclass(frozen=True)
class World:
    """A population of tasks, an agent, and what the tool does to it."""

    ease: float = 0.8
    """Mean logit of success; its standard deviation over tasks is 1.5."""
    effect: float = 0.0
    """Of the tool on the logit of success, mean over tasks."""
    interaction: float = 0.8
    """Its standard deviation over tasks."""
    few: float = 0.0
    """Share of tasks on which the tool helps by 4 logits; on the others it harms so much that the mean lift is 0."""
    more_tokens: float = 0.0
    """Mean logarithm of the token ratio; its standard deviation over tasks is 0.25."""
    failed_tokens: float = 0.5
    """A failed run has exp(this) times the tokens of a successful one."""
    hard_tokens: float = 0.0
    """By a logit of difficulty, a task has exp(this) times the tokens."""


@dataclass(frozen=True)
class Experiment:
    """Runs of many simulated experiments: [trials, tasks, seeds]."""

    treatment: Floats
    control: Floats
    """Successes, 0 or 1."""
    treatment_tokens: Floats
    control_tokens: Floats


def simulate(world: World, rng: np.random.Generator, trials: int, n_tasks: int, n_seeds: int) -> Experiment:
    """Run experiments in a world."""
    shape = (trials, n_tasks)
    base, effect = rng.normal(world.ease, 1.5, shape), rng.normal(world.effect, world.interaction, shape)
    if world.few:
        effect = np.where(rng.random(shape) < world.few, 4.0, -harm(world))
    size, ratio = rng.normal(0, 0.6, shape) - world.hard_tokens * base, rng.normal(world.more_tokens, 0.25, shape)
    found: list[Floats] = []
    for sign in (0.5, -0.5):
        chance = 1 / (1 + np.exp(-(base + sign * effect)))
        won = rng.random((*shape, n_seeds)) < chance[..., None]
        logs = math.log(20_000) + (size + sign * ratio)[..., None] + rng.normal(0, 0.4, won.shape)
        found += [won.astype(np.float64), np.exp(logs + world.failed_tokens * ~won)]
    return Experiment(found[0], found[2], found[1], found[3])


def harm(world: World) -> float:
    """The loss on most tasks that cancels the gain on few, by bisection over the distribution of difficulty."""
    base = world.ease + 1.5 * np.linspace(-5, 5, 2001)
    weight = np.exp(-(((base - world.ease) / 1.5) ** 2) / 2)

    def lift(effect: float) -> float:
        upper, lower = 1 / (1 + np.exp(-(base + effect / 2))), 1 / (1 + np.exp(-(base - effect / 2)))
        return float((weight * (upper - lower)).sum() / weight.sum())

    low, high = 0.0, 4.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 - world.few) * lift(middle) < world.few * lift(4.0) else (low, middle)
    return low


WORLDS: Mapping[str, World] = {
    "no effect": World(interaction=0.0),
    "gains and losses cancel": World(interaction=2.0),
    "few gain, most lose a little": World(few=0.15),
    "near the ceiling": World(ease=4.0),
    "hard tasks": World(ease=-2.0),
    "helps": World(effect=1.2, more_tokens=-0.2),
    "only costs": World(more_tokens=0.2),
}
SIZES = ((6, 3), (12, 3), (30, 1), (30, 3), (60, 3))
INTERVALS = ("success", "net tokens", "token ratio", "tokens per success")


@dataclass(frozen=True)
class Truth:
    """What the estimates estimate."""

    lift: float
    saved: float
    log_ratio: float
    saved_per_success: float


def truth_of(world: World, n_seeds: int, seed: int = 0) -> Truth:
    """By a large sample. The log ratio is that of means over so many seeds."""
    big = simulate(world, np.random.default_rng(seed), 1, POPULATION, n_seeds)
    tokens = big.treatment_tokens.mean(axis=2), big.control_tokens.mean(axis=2)
    return Truth(
        lift=float(big.treatment.mean() - big.control.mean()),
        saved=float(tokens[1].mean() - tokens[0].mean()),
        log_ratio=float(np.log(tokens[0] / tokens[1]).mean()),
        saved_per_success=float(tokens[1].mean() / big.control.mean() - tokens[0].mean() / big.treatment.mean()),
    )


def task_means(found: Experiment) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
    """Of each experiment: successes and tokens of treatment, successes and tokens of control, a task each."""
    means = (
        each.mean(axis=2) for each in (found.treatment, found.treatment_tokens, found.control, found.control_tokens)
    )
    return zip(*means, strict=True)


def coverage(world: World, trials: int, n_tasks: int, n_seeds: int, seed: int) -> Mapping[str, float]:
    """Share of the intervals of each kind that hold the truth; one that is missing holds nothing."""
    truth = truth_of(world, n_seeds)
    hits = dict.fromkeys(INTERVALS, 0)
    found = simulate(world, np.random.default_rng(seed), trials, n_tasks, n_seeds)
    for won_t, used_t, won_c, used_c in task_means(found):
        of = {
            "success": (lift_of(won_t - won_c), truth.lift),
            "net tokens": (mean_estimate((used_c - used_t).tolist(), 0, ALPHA), truth.saved),
            "token ratio": (mean_estimate(np.log(used_t / used_c).tolist(), 0, ALPHA), truth.log_ratio),
        }
        for name, (estimate, value) in of.items():
            if estimate.low is not None and estimate.high is not None:
                hits[name] += estimate.low <= value <= estimate.high
        ends = ratio_difference((used_c, won_c), (used_t, won_t), 1 - ALPHA)
        hits["tokens per success"] += ends is not None and ends[1] <= truth.saved_per_success <= ends[2]
    return {name: count / trials for name, count in hits.items()}


def lift_of(deltas: Floats) -> Estimate:
    """As the package estimates it."""
    return mean_estimate(deltas.tolist(), 0, ALPHA, bound=1.0)


def evidence_of(won_t: Floats, used_t: Floats, won_c: Floats, used_c: Floats) -> VerdictEvidence:
    """Of an experiment, or a stratum of it."""
    deltas = (won_t - won_c).tolist()
    saved = mean_estimate((used_c - used_t).tolist(), 0, ALPHA)
    return VerdictEvidence(lift_of(won_t - won_c), saved, p_of_loss(deltas, RULE.lift_margin, ALPHA), None)


def verdicts(
    world: World, trials: int, n_tasks: int, n_seeds: int, seed: int, n_strata: int = 1
) -> Mapping[StratumVerdict, float]:
    """Share of the experiments in which some stratum has each verdict."""
    found = simulate(world, np.random.default_rng(seed), trials, n_tasks * n_strata, n_seeds)
    counts = dict.fromkeys(StratumVerdict, 0)
    for means in task_means(found):
        strata = zip(*(np.split(values, n_strata) for values in means), strict=True)
        given = {each.verdict for each in decide([evidence_of(*values) for values in strata], RULE)}
        for verdict in given:
            counts[verdict] += 1
    return {verdict: count / trials for verdict, count in counts.items()}


def margin_world() -> World:
    """Tokens are saved, and the loss of success is the margin."""
    world = World(ease=3.5, interaction=0.5, more_tokens=-0.3)
    low, high = -4.0, 0.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if truth_of(replace(world, effect=middle), 1).lift < -RULE.lift_margin else (low, middle)
        )
    return replace(world, effect=low)


# The wrong ways.


def pooled_mcnemar(found: Experiment) -> Floats:
    """McNemar's test on all runs as if they were tasks: p-values."""
    return np.array(
        [mcnemar(c.ravel(), t.ravel()).p_two_sided for t, c in zip(found.treatment, found.control, strict=True)]
    )


def majority_mcnemar(found: Experiment) -> Floats:
    """McNemar's test on the majority of each task: p-values."""
    won = [(each.mean(axis=2) > 0.5).astype(np.float64) for each in (found.treatment, found.control)]
    return np.array([mcnemar(c, t).p_two_sided for t, c in zip(*won, strict=True)])


def t_on_tasks(found: Experiment) -> Floats:
    """The package's test of the lift: p-values."""
    deltas = found.treatment.mean(axis=2) - found.control.mean(axis=2)
    return np.array([lift_of(each).p for each in deltas], dtype=np.float64)


def z_covers(found: Experiment, truth: float) -> Floats:
    """Normal interval of the difference of two proportions over all runs: whether it holds the truth."""
    flat = [each.reshape(len(each), -1) for each in (found.treatment, found.control)]
    error = np.sqrt(sum(each.mean(axis=1) * (1 - each.mean(axis=1)) / each.shape[1] for each in flat))
    off = np.abs(flat[0].mean(axis=1) - flat[1].mean(axis=1) - truth)
    return np.asarray(off <= 1.96 * error, dtype=np.float64)


def bootstrap_covers(found: Experiment, truth: float, rng: np.random.Generator, n_draws: int = 1000) -> Floats:
    """Percentile bootstrap of tasks: whether it holds the truth."""
    deltas = found.treatment.mean(axis=2) - found.control.mean(axis=2)
    n_tasks = deltas.shape[1]
    held = []
    for each in deltas:
        means = each[rng.integers(0, n_tasks, (n_draws, n_tasks))].mean(axis=1)
        low, high = np.percentile(means, [2.5, 97.5])
        held.append(low <= truth <= high)
    return np.array(held, dtype=np.float64)


def t_covers(found: Experiment, truth: float) -> Floats:
    """The package's interval: whether it holds the truth."""
    deltas = found.treatment.mean(axis=2) - found.control.mean(axis=2)
    ends = [lift_of(each) for each in deltas]
    return np.array([each.low <= truth <= each.high for each in ends if each.low is not None and each.high is not None])


def stops_early(found: Experiment, looks: Sequence[int]) -> Floats:
    """Whether the test is significant at one of the looks."""
    deltas = found.treatment.mean(axis=2) - found.control.mean(axis=2)
    return np.array([any((lift_of(each[:n]).p or 0) <= ALPHA for n in looks) for each in deltas], dtype=np.float64)


def successes_only(found: Experiment) -> tuple[Floats, Floats]:
    """Welch's z on the tokens of all successful runs, and the package's ratio over tasks: whether each says "more tokens"."""
    wrong, right = [], []
    for place in range(len(found.treatment)):
        arms = [
            tokens[place][won[place] > 0]
            for won, tokens in ((found.treatment, found.treatment_tokens), (found.control, found.control_tokens))
        ]
        error = math.sqrt(sum(each.var(ddof=1) / each.size for each in arms))
        wrong.append((arms[0].mean() - arms[1].mean()) / error > 1.96)
        used = [each[place].mean(axis=1) for each in (found.treatment_tokens, found.control_tokens)]
        saved = mean_estimate((used[1] - used[0]).tolist(), 0, ALPHA)
        right.append(saved.high is not None and saved.high < 0)
    return np.array(wrong, dtype=np.float64), np.array(right, dtype=np.float64)


@dataclass(frozen=True)
class Wrong:
    """A wrong way, and the right one beside it."""

    name: str
    says: str
    size: tuple[int, int]
    wanted: float
    """Per cent."""
    rates: Callable[[np.random.Generator, int], tuple[Floats, Floats]]
    """Of the wrong way and of the right one, an experiment each."""


STRONG = WORLDS["gains and losses cancel"]
HARDER = World(effect=2.0, interaction=0.5, failed_tokens=0.0, hard_tokens=0.5)
"""The tool solves more of the hard tasks, which take more tokens in both arms alike."""
LOOKS = tuple(range(10, 61, 5))


def _false(p: Floats) -> Floats:
    return np.asarray(p <= ALPHA, dtype=np.float64)


def _pooled(n_tasks: int, n_seeds: int) -> Callable[[np.random.Generator, int], tuple[Floats, Floats]]:
    def rates(rng: np.random.Generator, trials: int) -> tuple[Floats, Floats]:
        found = simulate(STRONG, rng, trials, n_tasks, n_seeds)
        return _false(pooled_mcnemar(found)), _false(majority_mcnemar(found))

    return rates


def _over_runs(rng: np.random.Generator, trials: int) -> tuple[Floats, Floats]:
    found = simulate(World(interaction=3.0), rng, trials, 30, 5)
    return 1 - z_covers(found, 0.0), _false(t_on_tasks(found))


def _percentile(rng: np.random.Generator, trials: int) -> tuple[Floats, Floats]:
    found = simulate(WORLDS["no effect"], rng, trials, 6, 3)
    return 1 - bootstrap_covers(found, 0.0, rng), 1 - t_covers(found, 0.0)


def _looks(rng: np.random.Generator, trials: int) -> tuple[Floats, Floats]:
    found = simulate(WORLDS["no effect"], rng, trials, LOOKS[-1], 3)
    return stops_early(found, LOOKS), stops_early(found, LOOKS[-1:])


def _given_success(rng: np.random.Generator, trials: int) -> tuple[Floats, Floats]:
    return successes_only(simulate(HARDER, rng, trials, 60, 3))


def _cells(rng: np.random.Generator, trials: int) -> tuple[Floats, Floats]:
    found = simulate(WORLDS["no effect"], rng, trials, 12 * 10, 3)
    alone, together = [], []
    for means in task_means(found):
        strata = [evidence_of(*values) for values in zip(*(np.split(each, 12) for each in means), strict=True)]
        differs = (StratumVerdict.PAYS_OFF, StratumVerdict.NET_COST)
        alone.append(any((p or 1) <= ALPHA for each in strata for p in (each.lift.p, each.saved.p)))
        together.append(any(each.verdict in differs for each in decide(strata, RULE)))
    return np.array(alone, dtype=np.float64), np.array(together, dtype=np.float64)


WRONG: Sequence[Wrong] = (
    Wrong("McNemar's test over all runs", "a false difference", (30, 3), 5, _pooled(30, 3)),
    Wrong("McNemar's test over all runs, five seeds", "a false difference", (60, 5), 5, _pooled(60, 5)),
    Wrong("normal interval over all runs", "an interval without the truth", (30, 5), 5, _over_runs),
    Wrong("percentile bootstrap of six tasks", "an interval without the truth", (6, 3), 5, _percentile),
    Wrong("stopping at the first significant result", "a false difference", (60, 3), 5, _looks),
    Wrong("tokens of successful runs only", "a false cost", (60, 3), 2.5, _given_success),
    Wrong("no adjustment over 12 cells", "a false difference", (120, 3), 5, _cells),
)


def rows_of_coverage(trials: int, seed: int) -> Iterator[list[str]]:
    """The table of intervals."""
    for name, world in WORLDS.items():
        for n_tasks, n_seeds in SIZES:
            found = coverage(world, trials, n_tasks, n_seeds, seed)
            yield [name, f"{n_tasks} x {n_seeds}", *(f"{100 * found[each]:.1f}" for each in INTERVALS)]


def rows_of_verdicts(trials: int, seed: int) -> Iterator[list[str]]:
    """The table of verdicts."""
    for name, world in {**WORLDS, "saves tokens, loses the margin": margin_world()}.items():
        for n_tasks, n_seeds, n_strata in ((30, 3, 1), (60, 3, 1), (10, 3, 6)):
            found = verdicts(world, trials, n_tasks, n_seeds, seed, n_strata)
            shown = [f"{100 * found[each]:.1f}" for each in (StratumVerdict.PAYS_OFF, StratumVerdict.NET_COST)]
            yield [name, f"{n_tasks} x {n_seeds}", str(n_strata), *shown]


def rows_of_wrong_ways(trials: int, seed: int) -> Iterator[list[str]]:
    """The table of wrong ways."""
    for each in WRONG:
        wrong, right = each.rates(np.random.default_rng(seed), trials)
        size = f"{each.size[0]} x {each.size[1]}"
        yield [each.name, each.says, size, f"{each.wanted:g}", f"{100 * wrong.mean():.1f}", f"{100 * right.mean():.1f}"]


def _print(heading: str, columns: Sequence[str], rows: Iterator[list[str]]) -> None:
    print(f"## {heading}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)
    print()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--simulations", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=17)
    options = parser.parse_args()
    trials, seed = options.simulations, options.seed
    _print("Wrong ways", ("way", "error", "tasks x seeds", "wanted", "it", "ours"), rows_of_wrong_ways(trials, seed))
    columns = ("truth", "tasks x seeds", "strata", StratumVerdict.PAYS_OFF, StratumVerdict.NET_COST)
    _print("Verdicts", columns, rows_of_verdicts(trials, seed))
    _print("Coverage of 95 % intervals", ("truth", "tasks x seeds", *INTERVALS), rows_of_coverage(trials, seed))


if __name__ == "__main__":
    main()
