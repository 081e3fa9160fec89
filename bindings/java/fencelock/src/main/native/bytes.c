/* Texts on their way in and out. */
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
