/* What is called for every message: wait, receive, send, the time and the stopwatch. syscalls.py documents them.

   They do less than those of the standard library: they do not accept arguments of several types, they use descriptors
   instead of socket objects, and they do not release the interpreter's lock for a call that never waits. Only `wait`
   may wait, and releases the lock. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* The limit up to which received bytes are copied from the spare buffer, which is kept for the next call. More bytes are
   returned in the buffer itself, because a copy would cost more than a new buffer. */
#define FEW_BYTES (4 * 1024)

/* The most events that one wait returns. */
#define MOST_EVENTS 128

/* Times later than this, in seconds since the epoch, are treated as never. */
#define LATEST_S 1e11

static PyObject *spare;

static int
has_arguments(const char *name, Py_ssize_t given, Py_ssize_t wanted)
{
    if (given == wanted)
        return 1;
    PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments (%zd given)", name, wanted, given);
    return 0;
}

static PyObject *
receive(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (!has_arguments("receive", count, 2))
        return NULL;
    int descriptor = _PyLong_AsInt(arguments[0]);
    if (descriptor == -1 && PyErr_Occurred())
        return NULL;
    Py_ssize_t most = PyLong_AsSsize_t(arguments[1]);
    if (most == -1 && PyErr_Occurred())
        return NULL;
    if (most < 1) {
        PyErr_SetString(PyExc_ValueError, "receive() takes a positive number of bytes");
        return NULL;
    }
    if (spare != NULL && PyBytes_GET_SIZE(spare) < most)
        Py_CLEAR(spare);
    if (spare == NULL && (spare = PyBytes_FromStringAndSize(NULL, most)) == NULL)
        return NULL;
    ssize_t size = recv(descriptor, PyBytes_AS_STRING(spare), most, MSG_DONTWAIT);
    if (size < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    if (size <= FEW_BYTES)
        return PyBytes_FromStringAndSize(PyBytes_AS_STRING(spare), size);
    PyObject *data = spare;
    spare = NULL;
    if (size < PyBytes_GET_SIZE(data))
        _PyBytes_Resize(&data, size); /* on failure sets it to NULL, and sets an error */
    return data;
}

static PyObject *
send_(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (!has_arguments("send", count, 2))
        return NULL;
    int descriptor = _PyLong_AsInt(arguments[0]);
    if (descriptor == -1 && PyErr_Occurred())
        return NULL;
    if (!PyBytes_Check(arguments[1])) {
        PyErr_Format(PyExc_TypeError, "send() takes bytes, not %.100s", Py_TYPE(arguments[1])->tp_name);
        return NULL;
    }
    ssize_t sent = send(descriptor, PyBytes_AS_STRING(arguments[1]), PyBytes_GET_SIZE(arguments[1]),
                        MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    return PyLong_FromSsize_t(sent);
}

static PyObject *
accept_(PyObject *Py_UNUSED(module), PyObject *listener)
{
    int listening = _PyLong_AsInt(listener);
    if (listening == -1 && PyErr_Occurred())
        return NULL;
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    int descriptor = accept4(listening, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    char host[NI_MAXHOST] = "";
    int port = 0;
    if (address.ss_family == AF_INET) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        port = ntohs(v4->sin_port);
    } else if (address.ss_family == AF_INET6) { /* with the name of the interface if it is link-local */
        getnameinfo((struct sockaddr *)&address, size, host, sizeof host, NULL, 0, NI_NUMERICHOST);
        port = ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    }
    PyObject *accepted = Py_BuildValue("isi", descriptor, host, port);
    if (accepted == NULL)
        close(descriptor);
    return accepted;
}

static PyObject *
close_output(PyObject *Py_UNUSED(module), PyObject *argument)
{
    int descriptor = _PyLong_AsInt(argument);
    if (descriptor == -1 && PyErr_Occurred())
        return NULL;
    if (shutdown(descriptor, SHUT_WR) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    Py_RETURN_NONE;
}

/* Measures turns and their parts. Most are short, and cost no object and no Python code. */
typedef struct {
    PyObject_HEAD
    int is_running;  /* a turn has begun and has not ended */
    double short_s;  /* turns below this are only counted */
    double part_s;   /* parts below this are not reported */
    double started_s;
    double part_started_s;
    double short_total_s;
    long long short_count;
} Stopwatch;

static double
monotonic_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void
begin_turn(Stopwatch *self)
{
    self->started_s = self->part_started_s = monotonic_s();
    self->is_running = 1;
}

/* End a turn; return its length if it is not short, otherwise 0. */
static double
end_turn(Stopwatch *self)
{
    if (!self->is_running)
        return 0.0;
    double seconds = monotonic_s() - self->started_s;
    self->is_running = 0;
    if (seconds >= self->short_s)
        return seconds;
    self->short_count++;
    self->short_total_s += seconds;
    return 0.0;
}

static PyObject *
Stopwatch_start(Stopwatch *self, PyObject *Py_UNUSED(nothing))
{
    begin_turn(self);
    Py_RETURN_NONE;
}

static PyObject *
Stopwatch_part(Stopwatch *self, PyObject *Py_UNUSED(nothing))
{
    double now_s = monotonic_s();
    double seconds = now_s - self->part_started_s;
    self->part_started_s = now_s;
    if (seconds <= self->part_s)
        Py_RETURN_NONE;
    return PyFloat_FromDouble(seconds);
}

static PyObject *
Stopwatch_stop(Stopwatch *self, PyObject *Py_UNUSED(nothing))
{
    double seconds = end_turn(self);
    if (seconds > 0.0)
        return PyFloat_FromDouble(seconds);
    Py_RETURN_NONE;
}

static PyObject *
Stopwatch_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(named))
{
    double short_s, part_s;
    if (!PyArg_ParseTuple(arguments, "dd", &short_s, &part_s))
        return NULL;
    Stopwatch *self = (Stopwatch *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->short_s = short_s;
    self->part_s = part_s;
    self->part_started_s = monotonic_s();
    return (PyObject *)self;
}

static PyMethodDef stopwatch_methods[] = {
    {"start", (PyCFunction)Stopwatch_start, METH_NOARGS, NULL},
    {"part", (PyCFunction)Stopwatch_part, METH_NOARGS, NULL},
    {"stop", (PyCFunction)Stopwatch_stop, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef stopwatch_members[] = {
    {"short_count", T_LONGLONG, offsetof(Stopwatch, short_count), READONLY, NULL},
    {"short_total_s", T_DOUBLE, offsetof(Stopwatch, short_total_s), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject StopwatchType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "gateway.net._syscalls.Stopwatch",
    .tp_basicsize = sizeof(Stopwatch),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = Stopwatch_new,
    .tp_methods = stopwatch_methods,
    .tp_members = stopwatch_members,
};

/* Waits for an epoll, and for a time. The time is a timer that is registered in the epoll: a timeout for each wait
   would cost a microsecond, and the time seldom changes. */
typedef struct {
    PyObject_HEAD
    int epoll;
    int timer;
    int is_due;      /* the timer has expired, and this was not returned yet */
    double until_s;  /* the timer's time; 0 while it is not set */
} Waiter;

/* Remove the timer from the events, and record that it has expired; return the number of events left. */
static int
without_timer(Waiter *self, struct epoll_event *events, int count)
{
    int left = 0;
    for (int index = 0; index < count; index++) {
        if (events[index].data.fd == self->timer)
            self->is_due = 1;
        else
            events[left++] = events[index];
    }
    return left;
}

/* Return descriptors and their flags alternately, in one tuple. */
static PyObject *
event_tuple(const struct epoll_event *events, int count)
{
    PyObject *ready = PyTuple_New(2 * (Py_ssize_t)count);
    for (int index = 0; ready != NULL && index < count; index++) {
        PyObject *descriptor = PyLong_FromLong(events[index].data.fd);
        PyObject *flags = PyLong_FromUnsignedLong(events[index].events);
        PyTuple_SET_ITEM(ready, 2 * index, descriptor);
        PyTuple_SET_ITEM(ready, 2 * index + 1, flags);
        if (descriptor == NULL || flags == NULL)
            Py_CLEAR(ready);
    }
    return ready;
}

static int
set_timer(Waiter *self, double until_s)
{
    struct itimerspec setting = {0};
    self->is_due = 0;
    self->until_s = until_s;
    if (until_s < LATEST_S) {
        setting.it_value.tv_sec = (time_t)until_s;
        setting.it_value.tv_nsec = (long)(1e9 * (until_s - (double)setting.it_value.tv_sec));
    }
    return timerfd_settime(self->timer, TFD_TIMER_ABSTIME, &setting, NULL);
}

/* Wait until the wall clock shows a time, or poll if it is 0. */
static PyObject *
wait_until(Waiter *self, PyObject *until, PyObject *limit)
{
    struct epoll_event events[MOST_EVENTS];
    double until_s = PyFloat_AsDouble(until);
    int most = _PyLong_AsInt(limit);
    if (PyErr_Occurred())
        return NULL;
    if (until_s != 0.0) {
        if (until_s != self->until_s && set_timer(self, until_s) < 0)
            return PyErr_SetFromErrno(PyExc_OSError);
        if (self->is_due)
            Py_RETURN_NONE;
    }
    int found;
    Py_BEGIN_ALLOW_THREADS
    found = epoll_wait(self->epoll, events, most < MOST_EVENTS ? most : MOST_EVENTS, until_s != 0.0 ? -1 : 0);
    Py_END_ALLOW_THREADS
    if (found < 0 && errno != EINTR)
        return PyErr_SetFromErrno(PyExc_OSError);
    if (found < 0 && PyErr_CheckSignals() < 0)
        return NULL;
    found = without_timer(self, events, found);
    if (found == 0 && self->is_due && until_s != 0.0)
        Py_RETURN_NONE;
    return event_tuple(events, found);
}

static PyObject *
Waiter_wait(Waiter *self, PyObject *const *arguments, Py_ssize_t count)
{
    return has_arguments("wait", count, 2) ? wait_until(self, arguments[0], arguments[1]) : NULL;
}

/* A wait between two turns, so that their measurement costs no calls of its own. */
static PyObject *
Waiter_wait_for_turn(Waiter *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (!has_arguments("wait_for_turn", count, 3))
        return NULL;
    if (Py_TYPE(arguments[2]) != &StopwatchType) {
        PyErr_Format(PyExc_TypeError, "wait_for_turn() takes a Stopwatch, not %.100s", Py_TYPE(arguments[2])->tp_name);
        return NULL;
    }
    Stopwatch *watch = (Stopwatch *)arguments[2];
    double seconds = end_turn(watch);
    if (seconds > 0.0)
        return PyFloat_FromDouble(seconds);
    PyObject *ready = wait_until(self, arguments[0], arguments[1]);
    if (ready != NULL && ready != Py_None)
        begin_turn(watch);
    return ready;
}

static PyObject *
Waiter_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(named))
{
    int epoll;
    if (!PyArg_ParseTuple(arguments, "i", &epoll))
        return NULL;
    Waiter *self = (Waiter *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->epoll = epoll;
    self->timer = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event timer_event = {.events = EPOLLIN, .data.fd = self->timer};
    if (self->timer < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, self->timer, &timer_event) < 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static void
Waiter_dealloc(Waiter *self)
{
    if (self->timer >= 0)
        close(self->timer);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef waiter_methods[] = {
    {"wait", (PyCFunction)(void (*)(void))Waiter_wait, METH_FASTCALL, NULL},
    {"wait_for_turn", (PyCFunction)(void (*)(void))Waiter_wait_for_turn, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject WaiterType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "gateway.net._syscalls.Waiter",
    .tp_basicsize = sizeof(Waiter),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = Waiter_new,
    .tp_dealloc = (destructor)Waiter_dealloc,
    .tp_methods = waiter_methods,
};

static PyObject *
wall_ms(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing))
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return PyLong_FromLongLong((long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

static PyMethodDef methods[] = {
    {"receive", (PyCFunction)(void (*)(void))receive, METH_FASTCALL, NULL},
    {"send", (PyCFunction)(void (*)(void))send_, METH_FASTCALL, NULL},
    {"accept", accept_, METH_O, NULL},
    {"close_output", close_output, METH_O, NULL},
    {"wall_ms", wall_ms, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "gateway.net._syscalls",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit__syscalls(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && (PyModule_AddType(module, &WaiterType) < 0 || PyModule_AddType(module, &StopwatchType) < 0))
        Py_CLEAR(module);
    return module;
}
