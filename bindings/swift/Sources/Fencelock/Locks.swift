import Foundation

/// Connects to the store of a URL (`redis://host`, `zk://host`, `sqlite:file`, `memory:name`), and returns when
/// it has answered. A task that is cancelled gives the connection up.
///
/// Throws `FencelockError` as `connect`; `CancellationError`.
public func connectAsync(url: String, options: ConnectOptions? = nil) async throws -> Client {
    let connecting = try beginConnect(url: url, options: options)
    return try await withTaskCancellationHandler {
        try await asCancelled {
            try await connecting.ended()
            return try connecting.client()
        }
    } onCancel: {
        connecting.cancel()
    }
}

extension Client {
    /// Goes on with a hold by its ticket, from wherever that was made.
    public func attachAsync(ticket: String) async throws -> Hold {
        try await beginAttach(ticket: ticket).fetched()
    }
}

extension Client {
    /// Takes no new owners, waits until nothing is held and nobody waits, for at most `limit` seconds
    /// (`.infinity`: for as long as it takes), then closes. Gives whether all was released in time; the client is
    /// closed either way.
    ///
    /// Throws `FencelockError.InvalidArgument` for a negative limit.
    public func drainFor(_ limit: TimeInterval) async throws -> Bool {
        try await drainAsync(limit: patience(limit) ?? longest)
    }
}

extension Lock {
    /// Acquires, waiting for as long as it takes (also with `.infinity`), or for `timeout` seconds. A task that is
    /// cancelled while it waits holds nothing and stands in no queue afterwards.
    ///
    /// Throws `FencelockError`: `TimedOut`, `Unavailable`, `Closed`, `InvalidArgument` for a negative timeout;
    /// `CancellationError`.
    public func acquireAsync(timeout: TimeInterval? = nil) async throws -> Hold {
        try await beginAcquire(limit: timeout.flatMap(patience)).fetched()
    }

    /// Acquires without waiting for others; nil when somebody has the lock, or waits for it.
    public func tryAcquireAsync() async throws -> Hold? {
        do {
            return try await acquireAsync(timeout: 0)
        } catch FencelockError.Contended {
            return nil
        }
    }

    /// Acquires, runs the body, and releases.
    ///
    /// Throws `FencelockError.Lost` when the lock was lost before the body ended: what it did may have
    /// overlapped with another holder. If the body threw, that comes first.
    public func withLock<Value>(
        timeout: TimeInterval? = nil,
        _ body: (Hold) async throws -> Value
    ) async throws -> Value {
        let hold = try await acquireAsync(timeout: timeout)
        let value: Value
        do {
            value = try await body(hold)
        } catch {
            try? await hold.releaseAsync()
            throw error
        }
        do {
            try await hold.releaseAsync()
        } catch FencelockError.NotHeld {
            // The body released it.
        } catch FencelockError.Unavailable {
            // It was valid until the end, and nobody can do more than what goes on in the background.
        }
        return value
    }
}

extension RwLock {
    /// Acquires to read, together with other readers, runs the body, and releases; as `Lock.withLock` otherwise.
    public func withReadLock<Value>(
        timeout: TimeInterval? = nil,
        _ body: (Hold) async throws -> Value
    ) async throws -> Value {
        try await reader().withLock(timeout: timeout, body)
    }

    /// Acquires to write, alone, runs the body, and releases; as `Lock.withLock` otherwise.
    ///
    /// Throws `FencelockError.WouldDeadlock` when the lock's owner reads.
    public func withWriteLock<Value>(
        timeout: TimeInterval? = nil,
        _ body: (Hold) async throws -> Value
    ) async throws -> Value {
        try await writer().withLock(timeout: timeout, body)
    }
}

extension Semaphore {
    /// Takes `count` permits together, runs the body, and gives them back; as `Lock.withLock` otherwise.
    ///
    /// Throws `FencelockError.InvalidArgument` unless the count is 1 to the number of permits, and `Misconfigured`
    /// while others hold or wait who named another number.
    public func withPermit<Value>(
        _ count: UInt32 = 1,
        timeout: TimeInterval? = nil,
        _ body: (Hold) async throws -> Value
    ) async throws -> Value {
        try await taking(count: count).withLock(timeout: timeout, body)
    }
}

/// A thousand years, in seconds: what is generated ends the program on what it cannot count.
private let longest: TimeInterval = 1_000 * 365 * 86_400

/// How long to wait; nil without end.
private func patience(_ seconds: TimeInterval) throws -> TimeInterval? {
    guard seconds >= 0 else {
        throw FencelockError.InvalidArgument(message: "a span is a number of seconds from 0 on, not \(seconds)")
    }
    return seconds > longest ? nil : seconds
}

extension Acquiring {
    fileprivate func fetched() async throws -> Hold {
        try await withTaskCancellationHandler {
            try await asCancelled {
                try await ended()
                return try hold()
            }
        } onCancel: {
            cancel()
        }
    }
}

/// What the cancelling of a task ends with is Swift's own error.
private func asCancelled<Value>(_ body: () async throws -> Value) async throws -> Value {
    do {
        return try await body()
    } catch FencelockError.Cancelled where Task.isCancelled {
        throw CancellationError()
    }
}

extension FencelockError {
    /// Which kind of error it is; its raw value is its number, the same in every language.
    public var kind: ErrorKind {
        switch self {
        case .Contended: return .contended
        case .TimedOut: return .timedOut
        case .Cancelled: return .cancelled
        case .Unavailable: return .unavailable
        case .Lost: return .lost
        case .NotHeld: return .notHeld
        case .Misconfigured: return .misconfigured
        case .InvalidArgument: return .invalidArgument
        case .Unsupported: return .unsupported
        case .Closed: return .closed
        case .WouldDeadlock: return .wouldDeadlock
        case .Internal: return .internal
        }
    }

    /// Its number, the same in every language.
    public var code: Int { Int(kind.rawValue) }

    /// Whether the same call may succeed later without anybody changing anything.
    public var isRetryable: Bool { errorFacts(kind: kind).retryable }
}
