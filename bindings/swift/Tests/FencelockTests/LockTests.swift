import Foundation
import XCTest

@testable import Fencelock

final class LockTests: XCTestCase {
    private var client: Client!

    override func setUp() async throws {
        client = try await connectAsync(url: "memory:\(UUID().uuidString)")
    }

    override func tearDown() async throws {
        _ = try await client.shutDownAsync()
    }

    func testAcquiresAndReleases() async throws {
        let lock = try client.lock(name: "x")
        let first = try await lock.withLock { hold in
            XCTAssertTrue(hold.isValid())
            let none = try await lock.tryAcquireAsync()
            XCTAssertNil(none)
            return hold.token()
        }
        let second = try await lock.withLock { $0.token() }
        XCTAssertGreaterThan(second, first)
        let locked = try await lock.isLockedAsync()
        XCTAssertFalse(locked)
    }

    func testACancelledTaskLeavesTheQueue() async throws {
        let lock = try client.lock(name: "x")
        let hold = try await lock.acquireAsync()
        let waiting = Task { try await lock.acquireAsync() }
        while !client.metrics().contains("fencelock_waiting 1") { await Task.yield() }
        waiting.cancel()
        let result = await waiting.result
        XCTAssertThrowsError(try result.get()) { XCTAssertTrue($0 is CancellationError) }
        try await hold.releaseAsync()
        let locked = try await lock.isLockedAsync()
        XCTAssertFalse(locked)
    }

    func testSpansWithoutEndAndNegativeOnes() async throws {
        let lock = try client.lock(name: "x")
        let hold = try await lock.acquireAsync(timeout: .infinity)
        do {
            _ = try await lock.acquireAsync(timeout: -1)
            XCTFail("a negative timeout was taken")
        } catch let error as FencelockError {
            XCTAssertEqual(error.kind, .invalidArgument)
        }
        do {
            _ = try await client.drainFor(-1)
            XCTFail("a negative drain was taken")
        } catch let error as FencelockError {
            XCTAssertEqual(error.kind, .invalidArgument)
        }
        XCTAssertFalse(client.isShutDown())
        let drained = try await client.drainFor(0.02)
        XCTAssertFalse(drained)
        XCTAssertFalse(hold.isValid())
    }

    func testReadersAreInTogether() async throws {
        let lock = try client.rwLock(name: "x")
        let beside = try await lock.withReadLock { first in
            try await lock.withReadLock { second in
                XCTAssertTrue(first.isValid() && second.isValid())
                let writer = try await lock.writer().tryAcquireAsync()
                XCTAssertNil(writer)
                return second.token()
            }
        }
        let writer = try await lock.withWriteLock { $0.token() }
        XCTAssertGreaterThan(writer, beside)
    }

    func testPermitsAreCounted() async throws {
        let semaphore = try client.semaphore(name: "mailers", permits: 3)
        try await semaphore.withPermit(2) { _ in
            let left = try await semaphore.availablePermitsAsync()
            XCTAssertEqual(left, 1)
            let two = try await semaphore.taking(count: 2).tryAcquireAsync()
            XCTAssertNil(two)
        }
        let all = try await semaphore.availablePermitsAsync()
        XCTAssertEqual(all, 3)
    }

    func testErrorsHaveTheirNumbers() async throws {
        let lock = try client.lock(name: "x")
        let hold = try await lock.acquireAsync()
        do {
            _ = try await lock.acquireAsync(timeout: 0.02)
            XCTFail("it was held")
        } catch let error as FencelockError {
            XCTAssertEqual(error.code, 2)
            XCTAssertTrue(error.isRetryable)
        }
        let told = expectation(description: "the loss is told")
        try hold.onLost(listener: Told { told.fulfill() })
        let broken = try await client.breakLockAsync(name: "x", token: hold.token())
        XCTAssertEqual(broken.ended, 1)
        XCTAssertNil(broken.changedHands)
        await fulfillment(of: [told], timeout: 30)
        XCTAssertFalse(hold.isValid())
    }
}

private final class Told: LossListener, @unchecked Sendable {
    private let tell: () -> Void

    init(_ tell: @escaping () -> Void) { self.tell = tell }

    func lost(reason: LossReason) { tell() }
}
