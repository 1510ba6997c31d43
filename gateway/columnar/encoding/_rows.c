/* Rows of AMQP messages from the chunks of a stream as the buffers of Arrow columns. direct_rows.py documents it.

   This reads valid data only. Whatever is damaged, unusual or of another protocol makes `read_rows` return None, and
   then the Python code reads these rows and decides what they are, so that the rules for errors are in one place. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <string.h>

/* The layouts of gateway/kernel/messages/chunks.py and contents.py: sizes before the data of each. */
#define CHUNK_HEAD 33
#define ENTRY_HEAD 13
#define CONTENT_HEAD 10
#define NAMES_HEAD 6 /* the part of a content's head that is about its names; the rest is the size of the header */

#define DAY_MS 86400000
#define LATEST_MS 253402300799999
#define LAST_SECOND 253402300799
#define EXPIRATION_DIGITS 11 /* such a number is below the largest expiration */

static const char AMQP[] = "amqp-0-9-1";

/* The properties of AMQP in the order of their flags, from the highest on. */
enum kind { TEXT, TABLE, OCTET, SECONDS, UNUSED };
static const enum kind KINDS[] = {
    TEXT, TEXT, TABLE, OCTET, OCTET, TEXT, TEXT, TEXT, TEXT, SECONDS, TEXT, TEXT, TEXT, UNUSED,
};
#define PROPERTIES 14
#define EXPIRATION 7
#define UNKNOWN_FLAGS 0x0003

typedef struct {
    char *bytes;
    size_t size, room;
} Buffer;

/* A column: an Arrow bitmap of the rows that have a value, their values or the starts of their text, and the text. */
typedef struct {
    Buffer valid, values, text;
    Py_ssize_t present, filled;
} Column;

/* Distinct byte strings, numbered in the order of their appearance, and the number of each row. */
typedef struct {
    PyObject *numbers;
    Buffer codes;
    const uint8_t *last_head, *last;
    Py_ssize_t last_size;
    int32_t last_code;
} Dictionary;

typedef struct {
    Py_ssize_t count;
    uint64_t first;
    Buffer offsets, times;
    Column bodies;
    Column properties[PROPERTIES];
    Dictionary names, tables;
} Rows;

/* A message: its names, its header and its body in the data. */
typedef struct {
    const uint8_t *head, *names, *header, *body, *end;
} Content;

enum outcome { FAILED = -1, DECLINED = 0, DONE = 1 };

static uint64_t
number(const uint8_t *at, int size)
{
    uint64_t found = 0;
    while (size-- > 0)
        found = found << 8 | *at++;
    return found;
}

static int
reserve(Buffer *buffer, size_t more)
{
    if (buffer->size + more <= buffer->room)
        return 1;
    size_t room = 2 * buffer->room > buffer->size + more ? 2 * buffer->room : buffer->size + more + 1024;
    char *bytes = PyMem_Realloc(buffer->bytes, room);
    if (bytes == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    buffer->bytes = bytes;
    buffer->room = room;
    return 1;
}

static int
append(Buffer *buffer, const void *bytes, size_t size)
{
    if (!reserve(buffer, size))
        return 0;
    if (size > 0)
        memcpy(buffer->bytes + buffer->size, bytes, size);
    buffer->size += size;
    return 1;
}

static int
append_zeros(Buffer *buffer, size_t size)
{
    if (!reserve(buffer, size))
        return 0;
    if (size > 0)
        memset(buffer->bytes + buffer->size, 0, size);
    buffer->size += size;
    return 1;
}

/* Note that a row has a value; those before without one keep a 0 in the bitmap. */
static int
mark(Column *column, Py_ssize_t row)
{
    size_t wanted = (size_t)row / 8 + 1;
    if (wanted > column->valid.size && !append_zeros(&column->valid, wanted - column->valid.size))
        return 0;
    column->valid.bytes[row / 8] |= (char)(1 << row % 8);
    column->present++;
    return 1;
}

/* Fill up the starts of text: all rows up to `row` without one so far begin where the text ends now. */
static int
fill_starts(Column *column, Py_ssize_t row)
{
    int32_t start = (int32_t)column->text.size;
    for (; column->filled <= row; column->filled++)
        if (!append(&column->values, &start, sizeof start))
            return 0;
    return 1;
}

static int
put_text(Column *column, Py_ssize_t row, const uint8_t *text, Py_ssize_t size)
{
    return mark(column, row) && fill_starts(column, row) && append(&column->text, text, (size_t)size);
}

static int
put_number(Column *column, Py_ssize_t row, const void *value, size_t size)
{
    return mark(column, row) && append_zeros(&column->values, (size_t)row * size - column->values.size)
           && append(&column->values, value, size);
}

static int
is_utf8(const uint8_t *text, Py_ssize_t size)
{
    Py_ssize_t at = 0;
    while (at < size && text[at] < 0x80)
        at++;
    if (at == size)
        return 1;
    PyObject *decoded = PyUnicode_DecodeUTF8((const char *)text, size, NULL);
    if (decoded == NULL) {
        PyErr_Clear();
        return 0;
    }
    Py_DECREF(decoded);
    return 1;
}

static int
is_expiration(const uint8_t *text, Py_ssize_t size)
{
    for (Py_ssize_t at = 0; at < size; at++)
        if (text[at] < '0' || text[at] > '9')
            return 0;
    return 0 < size && size <= EXPIRATION_DIGITS;
}

static int
learn(Dictionary *distinct, const uint8_t *head, Py_ssize_t head_size, const uint8_t *bytes, Py_ssize_t size)
{
    if (distinct->numbers == NULL && (distinct->numbers = PyDict_New()) == NULL)
        return 0;
    PyObject *key = PyBytes_FromStringAndSize(NULL, head_size + size);
    PyObject *fresh = key == NULL ? NULL : PyLong_FromSsize_t(PyDict_GET_SIZE(distinct->numbers));
    PyObject *code = NULL;
    if (fresh != NULL) {
        memcpy(PyBytes_AS_STRING(key), head, (size_t)head_size);
        memcpy(PyBytes_AS_STRING(key) + head_size, bytes, (size_t)size);
        code = PyDict_SetDefault(distinct->numbers, key, fresh);
    }
    if (code != NULL)
        distinct->last_code = (int32_t)PyLong_AsLong(code);
    Py_XDECREF(fresh);
    Py_XDECREF(key);
    distinct->last_head = head;
    distinct->last = bytes;
    distinct->last_size = size;
    return code != NULL;
}

/* Add the row's number of two strings of bytes. The data lives longer than the dictionary, so the last ones stay there.
   Heads have one size. */
static int
put_code(Dictionary *distinct, const uint8_t *head, Py_ssize_t head_size, const uint8_t *bytes, Py_ssize_t size)
{
    int repeats = distinct->last != NULL && size == distinct->last_size
                  && memcmp(bytes, distinct->last, (size_t)size) == 0
                  && memcmp(head, distinct->last_head, (size_t)head_size) == 0;
    if (!repeats && !learn(distinct, head, head_size, bytes, size))
        return 0;
    return append(&distinct->codes, &distinct->last_code, sizeof distinct->last_code);
}

/* Find the parts of a content of the first layout. */
static int
split(const uint8_t *at, const uint8_t *end, Content *content)
{
    if (end - at < CONTENT_HEAD || *at != 1)
        return 0;
    Py_ssize_t keys = (Py_ssize_t)(number(at + 1, 2) + number(at + 3, 2)), format = at[5];
    Py_ssize_t header = (Py_ssize_t)number(at + NAMES_HEAD, 4);
    if (end - at - CONTENT_HEAD < keys + format + header)
        return 0;
    content->head = at;
    content->names = at + CONTENT_HEAD;
    content->header = content->names + keys + format;
    content->body = content->header + header;
    content->end = end;
    return format == (Py_ssize_t)strlen(AMQP) && memcmp(content->names + keys, AMQP, (size_t)format) == 0;
}

static int
has_more_keys(const uint8_t *at, const uint8_t *end)
{
    for (; end - at >= 2; at++)
        if (at[0] == 'C' && at[1] == 'C')
            return 1;
    return 0;
}

/* Set the columns of a header. One without a table has the number of an empty string. */
static enum outcome
put_properties(Rows *rows, const uint8_t *at, const uint8_t *end)
{
    if (end - at < 2)
        return DECLINED;
    unsigned flags = (unsigned)number(at, 2);
    if (flags & UNKNOWN_FLAGS)
        return DECLINED;
    int has_table = 0;
    const uint8_t *header = at;
    at += 2;
    for (int property = 0; property < PROPERTIES; property++) {
        if (!(flags & 0x8000U >> property))
            continue;
        Column *column = &rows->properties[property];
        enum kind kind = KINDS[property];
        if (kind == TABLE) {
            Py_ssize_t size = end - at < 4 ? -1 : (Py_ssize_t)number(at, 4);
            if (size < 0 || end - at - 4 < size || has_more_keys(header, end))
                return DECLINED;
            if (!put_code(&rows->tables, at, 0, at, 4 + size))
                return FAILED;
            has_table = 1;
            at += 4 + size;
        } else if (kind == OCTET) {
            if (at >= end)
                return DECLINED;
            int32_t value = *at++;
            if (!put_number(column, rows->count, &value, sizeof value))
                return FAILED;
        } else if (kind == SECONDS) {
            if (end - at < 8)
                return DECLINED;
            uint64_t seconds = number(at, 8);
            int64_t value = (int64_t)(seconds * 1000000);
            if (seconds <= LAST_SECOND && !put_number(column, rows->count, &value, sizeof value))
                return FAILED;
            at += 8;
        } else {
            Py_ssize_t size = at < end ? *at++ : -1;
            if (size < 0 || end - at < size || !is_utf8(at, size))
                return DECLINED;
            if (property == EXPIRATION && !is_expiration(at, size))
                return DECLINED;
            if (kind == TEXT && !put_text(column, rows->count, at, size))
                return FAILED;
            at += size;
        }
    }
    if (at != end)
        return DECLINED;
    if (!has_table && !put_code(&rows->tables, at, 0, at, 0))
        return FAILED;
    return DONE;
}

static enum outcome
put_row(Rows *rows, uint64_t time_ms, const uint8_t *at, const uint8_t *end)
{
    Content content;
    if (time_ms > LATEST_MS || !split(at, end, &content))
        return DECLINED;
    Py_ssize_t body = content.end - content.body;
    if ((size_t)body > (size_t)INT32_MAX - rows->bodies.text.size)
        return DECLINED;
    enum outcome outcome = put_properties(rows, content.header, content.body);
    if (outcome != DONE)
        return outcome;
    int64_t time_us = (int64_t)time_ms * 1000, offset = (int64_t)rows->first + rows->count;
    if (!put_code(&rows->names, content.head, NAMES_HEAD, content.names, content.header - content.names)
        || !append(&rows->offsets, &offset, sizeof offset) || !append(&rows->times, &time_us, sizeof time_us)
        || !put_text(&rows->bodies, rows->count, content.body, body))
        return FAILED;
    rows->count++;
    return DONE;
}

typedef struct {
    const uint8_t *data;
    Py_ssize_t size, chunk; /* the position of the chunk at hand */
    uint64_t first, end;
    Py_ssize_t most_rows, most_bytes;
} Request;

/* Read rows up to the limits of a batch. Also the first row after it must be readable. */
static enum outcome
fill(Request *request, Rows *rows)
{
    int64_t room = request->most_bytes;
    uint64_t day = 0;
    while (request->chunk < request->size) {
        const uint8_t *head = request->data + request->chunk;
        if (request->size - request->chunk < CHUNK_HEAD || *head != 1)
            return DECLINED;
        uint64_t offset = number(head + 1, 8), last = offset + number(head + 9, 4);
        Py_ssize_t entries = (Py_ssize_t)number(head + 29, 4);
        if (request->size - request->chunk - CHUNK_HEAD < entries || last < offset)
            return DECLINED;
        const uint8_t *at = head + CHUNK_HEAD, *stop = at + entries;
        for (; last > request->first && offset < last; offset++) {
            if (stop - at < ENTRY_HEAD)
                return DECLINED;
            uint64_t time_ms = number(at, 8);
            Py_ssize_t filter = at[8], content = (Py_ssize_t)number(at + 9, 4);
            at += ENTRY_HEAD;
            if (stop - at < filter + content)
                return DECLINED;
            const uint8_t *begin = at + filter;
            at = begin + content;
            if (offset < request->first)
                continue;
            if (offset >= request->end)
                return DONE;
            if (rows->count == 0) {
                rows->first = offset;
                day = time_ms / DAY_MS;
            } else if (room <= 0 || rows->count >= request->most_rows || time_ms / DAY_MS != day) {
                return DONE;
            }
            enum outcome outcome = put_row(rows, time_ms, begin, at);
            if (outcome != DONE)
                return outcome;
            room = request->most_bytes - (int64_t)rows->bodies.text.size;
        }
        request->chunk += CHUNK_HEAD + entries;
    }
    return DONE;
}

static PyObject *
taken(const Buffer *buffer)
{
    return PyBytes_FromStringAndSize(buffer->bytes, (Py_ssize_t)buffer->size);
}

/* Return bitmap, values and text of a column with any value, else None. The bitmap is None if all rows have one. */
static PyObject *
column_of(Column *column, Py_ssize_t count, enum kind kind)
{
    if (column->present == 0)
        Py_RETURN_NONE;
    size_t bitmap = ((size_t)count + 7) / 8, width = kind == OCTET ? sizeof(int32_t) : sizeof(int64_t);
    if (!append_zeros(&column->valid, bitmap - column->valid.size))
        return NULL;
    if (kind == TEXT ? !fill_starts(column, count)
                     : !append_zeros(&column->values, (size_t)count * width - column->values.size))
        return NULL;
    PyObject *valid = column->present == count ? Py_NewRef(Py_None) : taken(&column->valid);
    return Py_BuildValue("(NNN)", valid, taken(&column->values),
                         kind == TEXT ? taken(&column->text) : Py_NewRef(Py_None));
}

static PyObject *
dictionary_of(Dictionary *distinct)
{
    return Py_BuildValue("(NN)", PyDict_Keys(distinct->numbers), taken(&distinct->codes));
}

static PyObject *
result_of(Rows *rows, Py_ssize_t chunk)
{
    if (rows->count == 0)
        return PyTuple_New(0);
    PyObject *properties = PyTuple_New(PROPERTIES);
    for (int property = 0; properties != NULL && property < PROPERTIES; property++) {
        PyObject *column = column_of(&rows->properties[property], rows->count, KINDS[property]);
        PyTuple_SET_ITEM(properties, property, column);
        if (column == NULL)
            Py_CLEAR(properties);
    }
    if (properties == NULL)
        return NULL;
    return Py_BuildValue("(nKnNNNNNN)", chunk, (unsigned long long)rows->first, rows->count,
                         taken(&rows->offsets), taken(&rows->times),
                         column_of(&rows->bodies, rows->count, TEXT), dictionary_of(&rows->names),
                         dictionary_of(&rows->tables), properties);
}

static void
clear_column(Column *column)
{
    PyMem_Free(column->valid.bytes);
    PyMem_Free(column->values.bytes);
    PyMem_Free(column->text.bytes);
}

static void
clear(Rows *rows)
{
    clear_column(&rows->bodies);
    for (int property = 0; property < PROPERTIES; property++)
        clear_column(&rows->properties[property]);
    PyMem_Free(rows->offsets.bytes);
    PyMem_Free(rows->times.bytes);
    PyMem_Free(rows->names.codes.bytes);
    PyMem_Free(rows->tables.codes.bytes);
    Py_XDECREF(rows->names.numbers);
    Py_XDECREF(rows->tables.numbers);
}

static PyObject *
read_rows(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *data;
    Request request;
    unsigned long long first, end;
    if (!PyArg_ParseTuple(arguments, "SnKKnn", &data, &request.chunk, &first, &end, &request.most_rows,
                          &request.most_bytes))
        return NULL;
    request.data = (const uint8_t *)PyBytes_AS_STRING(data);
    request.size = PyBytes_GET_SIZE(data);
    request.first = first;
    request.end = end;
    if (request.chunk < 0) {
        PyErr_SetString(PyExc_ValueError, "read_rows() takes a position in the data");
        return NULL;
    }
    Rows rows = {0};
    enum outcome outcome = fill(&request, &rows);
    PyObject *result = outcome == DONE ? result_of(&rows, request.chunk) : NULL;
    clear(&rows);
    if (outcome == DECLINED)
        Py_RETURN_NONE;
    return result;
}

static PyMethodDef methods[] = {
    {"read_rows", read_rows, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "gateway.columnar.encoding._rows",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit__rows(void)
{
    return PyModule_Create(&definition);
}
