"""Vectors of scikit-learn estimators: what ``partial_fit`` learns, exchanged between ranks.

A training loop gains three lines::

    clf = SGDClassifier()
    v = malt.sklearn.Vector(clf, graph="halton", consistency="ssp:2")
    for X, y in batches:                                   # this rank's
        clf.partial_fit(X, y, classes=[0, 1])
        v.sync()
    v.allreduce()                                          # the same model on every rank

What is exchanged depends on what the estimator learns:

* **Weights** (linear models, neural networks, one-class SVM) are averaged. Their
  arrays become views of the vector's memory, so nothing is copied.
* **Centres** (mini-batch k-means) are averaged too, weighted by the counts.
* **Counts** (naive Bayes) are added up: with everything exchanged the model is that
  of one process that has seen all data. Scalers are merged in the same way.
"""

from ._vector import Vector as Vector

__all__ = ["Vector"]
