package io.fencelock;

/** Something went wrong; the subclass and {@link #code} say what, the message says what to do. */
public abstract sealed class FencelockException extends RuntimeException implements FencelockFailure
        permits LockContendedException,
                LockTimeoutException,
                LockCancelledException,
                StoreUnavailableException,
                LockLostException,
                StoreMisconfiguredException,
                InvalidArgumentException,
                UnsupportedByStoreException,
                ClientClosedException,
                InternalErrorException {
    private static final long serialVersionUID = 1L;

    /** The code; an enum constant, so it survives serialisation. */
    private final ErrorCode code;

    FencelockException(ErrorCode code, String message) {
        super(message);
        this.code = code;
    }

    @Override
    public final ErrorCode code() {
        return code;
    }

    /** The exception for a status of the native library, made where the caller waits. */
    static RuntimeException of(int status, String message) {
        return switch (ErrorCode.of(status)) {
            case CONTENDED -> new LockContendedException(message);
            case TIMED_OUT -> new LockTimeoutException(message);
            case CANCELLED -> new LockCancelledException(message);
            case UNAVAILABLE -> new StoreUnavailableException(message);
            case LOST -> new LockLostException(message);
            case NOT_HELD -> new NotHeldException(message);
            case MISCONFIGURED -> new StoreMisconfiguredException(message);
            case INVALID_ARGUMENT -> new InvalidArgumentException(message);
            case UNSUPPORTED -> new UnsupportedByStoreException(message);
            case CLOSED -> new ClientClosedException(message);
            case WOULD_DEADLOCK -> new WouldDeadlockException(message);
            case INTERNAL -> new InternalErrorException(message);
        };
    }
}
