/*
 * Vector.sync() as loops call it, of a vector whose sync is the library's alone: without arguments,
 * or with weight=, from a line that was told before; and with every= while it is not due, from the
 * line of the last such call. Then no Python code runs. All other calls go to the function of Python.
 */
static PyObject *whole;                          /* that function */
static PyObject *place, *listeners, *caught;     /* see place.py, listeners.py, loading.py */
static PyObject *wanted, *code, *instruction, *texts; /* names in place */
static PyObject *quick, *counted;                /* attributes of a vector */
static PyObject *f_code, *f_lasti, *answer;      /* attributes of a frame, and of the vector's object */
static PyObject *every, *weight;                 /* names of arguments */
static int forked;                               /* this process is a child, which has no Go runtime */

static void in_child(void) { forked = 1; }

/* Which instruction of which code makes this call; 0: none. */
static int caller(PyObject **of, PyObject **number)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    if (frame == NULL || (*of = PyObject_GetAttr(frame, f_code)) == NULL)
        return 0;
    if ((*number = PyObject_GetAttr(frame, f_lasti)) != NULL)
        return 1;
    Py_DECREF(*of);
    return 0;
}

/* Whether this call is made by that instruction of that code. */
static int made_by(PyObject *of, PyObject *number)
{
    PyObject *now, *at;
    int same = 0;
    if (caller(&now, &at)) {
        same = now == of && PyLong_AsLong(at) == PyLong_AsLong(number);
        Py_DECREF(now);
        Py_DECREF(at);
    }
    return same;
}

/* Tells the other ranks where this call is, if it has been told before; see _tell in place.py. */
static int tell(void)
{
    PyObject *of, *number, *address, *key = NULL, *known = NULL;
    if (!caller(&of, &number))
        return 0;
    if ((address = PyLong_FromVoidPtr(of)) != NULL && (key = PyTuple_Pack(2, address, number)) != NULL)
        known = PyDict_GetItem(PyDict_GetItem(place, texts), key);
    if (known != NULL) {
        malt_at(PyBytes_AsString(PyTuple_GetItem(known, 1)));
        PyDict_SetItem(place, code, of);
        PyDict_SetItem(place, instruction, number);
    }
    Py_XDECREF(key);
    Py_XDECREF(address);
    Py_DECREF(number);
    Py_DECREF(of);
    return known != NULL;
}

/* Whether other ranks know where this call is, or there are none. */
static int told(void)
{
    return PyDict_GetItem(place, wanted) != Py_True ||
           made_by(PyDict_GetItem(place, code), PyDict_GetItem(place, instruction)) || tell();
}

/* Notes the weight of a call, NULL: none was given. */
static void weighs(PyObject *last, PyObject *w)
{
    w = w == NULL ? Py_None : w;
    Py_INCREF(w);
    PyList_SetItem(last, 3, w);
}

/* Counts a call with every=, unless it is due, or from another place than the last one: see every.py. */
static int skips(PyObject *vector, int64_t k, PyObject *w)
{
    PyObject *last = PyObject_GetAttr(vector, counted), *next;
    int64_t n;
    int skipped = 0;
    if (last == NULL)
        PyErr_Clear();
    else if (last != Py_None && made_by(PyList_GetItem(last, 0), PyList_GetItem(last, 1))) {
        n = PyLong_AsLongLong(PyList_GetItem(last, 2)) + 1;
        skipped = n < k && (next = PyLong_FromLongLong(n)) != NULL && PyList_SetItem(last, 2, next) == 0;
        if (skipped)
            weighs(last, w);
    }
    Py_XDECREF(last);
    return skipped;
}

/* Not METH_FASTCALL: CPython 3.11 has two instructions of a call, and makes such ones from either. */
static PyObject *quick_sync(PyObject *vector, PyObject *args, PyObject *named)
{
    PyObject *k = NULL, *w = NULL, *way, *first, *all, *result = NULL;
    int64_t n = 1;
    int known = PyTuple_Size(args) == 0, over;
    if (named != NULL && known) {
        k = PyDict_GetItem(named, every);
        w = PyDict_GetItem(named, weight);
        known = PyDict_Size(named) == (k != NULL) + (w != NULL) && (k == NULL || PyLong_CheckExact(k)) &&
                (w == NULL || PyFloat_CheckExact(w) || PyLong_CheckExact(w));
    }
    if (k != NULL && known && (n = PyLong_AsLongLongAndOverflow(k, &over)) > 1 && skips(vector, n, w)) {
        Py_INCREF(Py_None);
        return Py_None;
    }
    if (!forked && known && n == 1 && PyList_Size(listeners) == 0 && told()) {
        if ((way = PyObject_GetAttr(vector, quick)) == NULL)
            return NULL;
        if (way != Py_None) { /* its handle, its object, and Calls.last */
            malt_handle handle = PyLong_AsUnsignedLongLong(PyTuple_GetItem(way, 0));
            double weight_of = w == NULL ? 1 : PyFloat_AsDouble(w);
            if (weight_of == -1 && PyErr_Occurred()) {
                Py_DECREF(way);
                return NULL;
            }
            weighs(PyTuple_GetItem(way, 2), w);
            Py_BEGIN_ALLOW_THREADS
            n = malt_python_sync_as(handle, weight_of, patience);
            Py_END_ALLOW_THREADS
            if (n >= 0 && PyDict_Size(caught) == 0)
                result = PyLong_FromLongLong(n);
            else if ((first = PyLong_FromLongLong(n)) != NULL) {
                result = PyObject_CallMethodObjArgs(PyTuple_GetItem(way, 1), answer, first, Py_None, NULL);
                Py_DECREF(first);
            }
            Py_DECREF(way);
            return result;
        }
        Py_DECREF(way);
    }
    if ((first = PyTuple_Pack(1, vector)) != NULL && (all = PySequence_Concat(first, args)) != NULL) {
        result = PyObject_Call(whole, all, named);
        Py_DECREF(all);
    }
    Py_XDECREF(first);
    return result;
}

/* Puts it in the place of the function. The address is that of a tuple of all of these; they stay for good. */
static void malt_python_quicken(uintptr_t address)
{
    static PyMethodDef method = {"sync", (PyCFunction)(void (*)(void))quick_sync, METH_VARARGS | METH_KEYWORDS, NULL};
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *all = (PyObject *)address, *owner, *made;
    if (PyArg_ParseTuple(all, "OOsOOOOOOOOOOOOOO", &owner, &whole, &method.ml_doc, &place, &listeners, &caught, &wanted, &code,
                         &instruction, &texts, &quick, &counted, &f_code, &f_lasti, &answer, &every, &weight)) {
        Py_INCREF(all);
        if (pthread_atfork(NULL, NULL, in_child) != 0)
            PyErr_NoMemory();
        else if ((made = PyDescr_NewMethod((PyTypeObject *)owner, &method)) != NULL) {
            PyObject_SetAttrString(owner, method.ml_name, made);
            Py_DECREF(made);
        }
    }
    PyGILState_Release(state);
}
