/* Loading, and strings. */
#include <stdlib.h>
#include <string.h>

#include "fencelock_java.h"

bool bytes_open(JNIEnv *env, bytes *bytes, jbyteArray array) {
    bytes->data = NULL;
    bytes->length = 0;
    if (array == NULL) return true;
    jsize length = (*env)->GetArrayLength(env, array);
    bytes->data = bytes->inside;
    if ((size_t)length > sizeof bytes->inside) {
        bytes->data = malloc((size_t)length);
        if (bytes->data == NULL) {
            jclass error = (*env)->FindClass(env, "java/lang/OutOfMemoryError");
            if (error != NULL) (*env)->ThrowNew(env, error, "no memory for a text");
            return false;
        }
    }
    bytes->length = (size_t)length;
    (*env)->GetByteArrayRegion(env, array, 0, length, (jbyte *)bytes->data);
    return true;
}

void bytes_close(bytes *bytes) {
    if (bytes->data != bytes->inside) free(bytes->data);
}

jbyteArray bytes_for_java(JNIEnv *env, fencelock_string string) {
    jbyteArray array = (*env)->NewByteArray(env, (jsize)string.length);
    if (array != NULL && string.length > 0) {
        (*env)->SetByteArrayRegion(env, array, 0, (jsize)string.length,
                                   (const jbyte *)string.data);
    }
    return array;
}

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved) {
    (void)reserved;
    JNIEnv *env = NULL;
    if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_8) != JNI_OK) return JNI_ERR;
    jclass native = (*env)->FindClass(env, "io/fencelock/Native");
    if (native == NULL) return JNI_ERR;
    const method_table *const tables[] = {&client_methods, &lock_methods, &hold_methods};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if ((*env)->RegisterNatives(env, native, tables[i]->methods, tables[i]->count) != 0) {
            return JNI_ERR;
        }
    }
    return upcalls_init(vm, env, native) ? JNI_VERSION_1_8 : JNI_ERR;
}
