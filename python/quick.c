/*
 * Vector.sync() as loops call it: without arguments, from the line that was told last, of a vector
 * whose sync is the library's alone. Then no Python code runs. All other calls go to the function of
 * Python.
 */
static PyObject *whole;                             /* that function */
static PyObject *place, *listeners, *caught;        /* see place.py, listeners.py, loading.py */
static PyObject *wanted, *code, *instruction;       /* names in place */
static PyObject *quick, *f_code, *f_lasti, *answer; /* attributes: of a vector, a frame, the vector's object */
static int forked;                                  /* this process is a child, which has no Go runtime */

static void in_child(void) { forked = 1; }

/* Whether other ranks know where this call is, or there are none. */
static int told(void)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame(), *now, *at;
    int same = 0;
    if (PyDict_GetItem(place, wanted) != Py_True)
        return 1;
    if (frame == NULL)
        return 0;
    if ((now = PyObject_GetAttr(frame, f_code)) != NULL && (at = PyObject_GetAttr(frame, f_lasti)) != NULL) {
        same = now == PyDict_GetItem(place, code) && PyLong_AsLong(at) == PyLong_AsLong(PyDict_GetItem(place, instruction));
        Py_DECREF(at);
    }
    Py_XDECREF(now);
    return same;
}

static PyObject *quick_sync(PyObject *vector, PyObject *args, PyObject *named)
{
    PyObject *way, *first, *all, *result = NULL;
    if (!forked && PyTuple_Size(args) == 0 && named == NULL && PyList_Size(listeners) == 0 && told()) {
        if ((way = PyObject_GetAttr(vector, quick)) == NULL)
            return NULL;
        if (way != Py_None) { /* its handle, and its object */
            malt_handle handle = PyLong_AsUnsignedLongLong(PyTuple_GetItem(way, 0));
            int64_t n;
            Py_BEGIN_ALLOW_THREADS
            n = malt_python_sync(handle);
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
    if (PyArg_ParseTuple(all, "OOsOOOOOOOOOO", &owner, &whole, &method.ml_doc, &place, &listeners, &caught, &wanted, &code,
                         &instruction, &quick, &f_code, &f_lasti, &answer)) {
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
