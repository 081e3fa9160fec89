package io.fencelock;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Strings on their way to the native library and back. */
final class Text {
    private Text() {}

    /** UTF-8; a lone surrogate is refused, because its replacement would be another's name. */
    static byte[] encode(String what, String text) {
        try {
            ByteBuffer bytes = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
            return Arrays.copyOf(bytes.array(), bytes.limit());
        } catch (CharacterCodingException e) {
            throw new InvalidArgumentException(
                    what + " is no valid text: it has half of a surrogate pair in it");
        }
    }

    static String decode(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
