/* What the parts of the Python module share. */
#ifndef CRANFIELD_BINDING_H
#define CRANFIELD_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* rank_mappings(run, query_ids, judged, ties, single): see its documentation in mapping.c. */
PyObject *rank_mappings(PyObject *module, PyObject *args);
extern const char RANK_MAPPINGS_DOC[];

/* rank_table(ids, scores, single, width, starts, judged, drop): see its documentation in table.c. */
PyObject *rank_table(PyObject *module, PyObject *args);
extern const char RANK_TABLE_DOC[];

extern PyType_Spec COUNTER_SPEC; /* counter.c */

/* Bytes of an array; the elements are for numpy to see. */
static inline PyObject *array_bytes(const void *data, size_t n, size_t element) {
    if (n > (size_t)PY_SSIZE_T_MAX / element) return PyErr_NoMemory();
    return PyBytes_FromStringAndSize(data, (Py_ssize_t)(n * element));
}

#endif
