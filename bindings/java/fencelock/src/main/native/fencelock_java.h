/* What the files of the JNI shim share. It converts types, and does nothing else. */
#ifndef FENCELOCK_JAVA_H
#define FENCELOCK_JAVA_H

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

#include "fencelock.h"

/* A handle of the C library is a number in a checked table; Java keeps it in a long. */
#define AS(kind, handle) ((fencelock_##kind *)(uintptr_t)(handle))
#define NUMBER(pointer) ((jlong)(uintptr_t)(pointer))

/* A byte[] from Java: UTF-8 with its length, or NULL. */
typedef struct bytes {
    char *data;
    size_t length;
    char inside[576]; /* names and URLs fit; what is longer is allocated */
} bytes;

/* False: an exception is pending. Also when false, close it. */
bool bytes_open(JNIEnv *env, bytes *bytes, jbyteArray array);
void bytes_close(bytes *bytes);

/* A byte[] for Java, or NULL with an exception pending. */
jbyteArray bytes_for_java(JNIEnv *env, fencelock_string string);

/* Throws what a status and its error say, and frees the error; false when the status is OK. Have the
 * status in a variable first: the order in which arguments are evaluated is not defined. */
bool thrown(JNIEnv *env, jclass native, fencelock_status status, fencelock_error *error);

/* A reference that other threads may use. NULL: an exception is pending. */
jobject global_of(JNIEnv *env, jobject object);

/* Gives what a completion carries to a Completion of Java. */
void deliver(JNIEnv *env, jobject target, const fencelock_completion *completion);

/* fencelock_callback, fencelock_lost_callback, fencelock_wanted_callback and fencelock_destroy. The
 * user data are a global reference to a Completion, which the first frees, or to a Notice, which
 * the last frees. */
void on_completion(const fencelock_completion *completion, void *user_data);
void on_lost(fencelock_loss reason, void *user_data);
void on_wanted(void *user_data);
void on_destroy(void *user_data);

/* Called when the library is loaded; false: an exception is pending. */
bool upcalls_init(JavaVM *vm, JNIEnv *env, jclass native);

/* The native methods of io.fencelock.Native, by file. */
typedef struct method_table {
    const JNINativeMethod *methods;
    jint count;
} method_table;
extern const method_table client_methods;
extern const method_table lock_methods;
extern const method_table hold_methods;

#define METHOD(name, signature) {#name, signature, (void *)native_##name}
#define TABLE(methods) {methods, (jint)(sizeof(methods) / sizeof(*(methods)))}

#define BYTES "[B"
#define COMPLETION "Lio/fencelock/Completion;"

#endif
