QUICK = {"passes": 4, "keep": 2}
# ---- checks
*survivors, dead = results["continue"]
assert isinstance(dead, malt.PeerError)
assert list(survivors[0][1]) == list(range(ranks - 1))
assert len(set(survivors[0][1].values())) == 1
assert all(s[1] == survivors[0][1] for s in survivors)
assert all(np.array_equal(s[0], survivors[0][0]) for s in survivors)
items = [(done, i) for done, i, _ in taken]
assert set(items) == {(done, i) for done in range(passes) for i in range(0, 173_612, 1000)}
assert len(items) == len(set(items)) + len(twice)
assert len(twice) == 1
assert all(ranks - 1 in who for who in twice.values())
assert same
assert all(np.isfinite(s) for s in reached.values())
assert abs(losses["continue"][-1] / losses["no death"][-1] - 1) < 0.05
assert seconds["restart"][saved] < died["restart"] < seconds["restart"][first]
