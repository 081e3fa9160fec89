// The first lock: on the store of the URL that is given, or in this process' memory.
import Fencelock

let url = CommandLine.arguments.dropFirst().first ?? "memory:"
let client = try await connectAsync(url: url)
let lock = try client.lock(name: "stock/coupon-7")
do {
    try await lock.withLock(timeout: 5) { hold in
        if hold.previousAbandoned() == .yes { print("the last holder was lost at its work") }
        print("one sold, under token \(hold.token())")
    }
} catch FencelockError.TimedOut(let message) {
    print("sold out of patience: \(message)")
}
try await client.shutDownAsync()
