QUICK = {"passes": 1}
# ---- checks
assert len(curve) == ranks
assert all(c == curve[0] for c in curve)
assert curve[0][-1] < 1.03 * losses[-1]
assert set(results) == {1, 2, ranks}
assert all(losses_n[-1] < 0.2 < losses_n[0] for _, losses_n in results.values())
assert reached[1] is not None
assert all(f"{n} ranks: {verdict(n)}" in [t.get_text() for t in ax.get_legend().get_texts()] for n in results if n > 1)
