"""Vectors of scikit-learn estimators: ranks exchange the models that ``partial_fit`` trains.

Add three lines to a training loop::

    clf = SGDClassifier()
    v = malt.sklearn.Vector(clf, graph="halton", consistency="ssp:2")
    for X, y in batches:                                   # this rank's batches
        clf.partial_fit(X, y, classes=[0, 1])
        v.sync()
    v.allreduce()                                          # the same model on every rank

The exchange depends on what the estimator learns:

* **Weights** (linear models, neural networks, one-class SVM) are averaged. Their
  arrays become views of the vector's memory, so nothing is copied.
* **Centres** (mini-batch k-means) are averaged too, weighted by the counts.
* **Counts** (naive Bayes) are added up: after a final `allreduce` the model is the same as
  if one process had seen all data. Scalers are merged in the same way.
"""

from ._vector import Vector as Vector

__all__ = ["Vector"]
