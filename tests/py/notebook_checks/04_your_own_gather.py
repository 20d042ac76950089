QUICK = {}
# ---- checks
final = {name: losses[-1] for name, (_, losses) in curves.items()}
honest, lied, robust = final.values()
assert honest < 0.2
assert lied > 1.2 * honest
assert robust < 0.8 * lied or ranks < 3  # two ranks: which of them lies?
assert all(min(losses[-10:]) < 0.3 for losses in slow.values())  # the last may come just after an old update
