"""Some dataflow graphs of eight ranks."""

import matplotlib.pyplot as plt

import malt

fig, axes = plt.subplots(3, 2, figsize=(5, 7))
for ax, name in zip(axes.flat, ("all", "halton", "chord", "ring", "hypercube", "star"), strict=True):
    malt.Graph(name, 8).plot(ax=ax)
    ax.set_title(f'"{name}"', fontsize=10)
fig.tight_layout()
