// swift-tools-version:5.9
import PackageDescription

let package = Package(
    name: "FirstLock",
    platforms: [.macOS(.v12)],
    dependencies: [.package(name: "Fencelock", path: "../../bindings/swift")],
    targets: [
        .executableTarget(
            name: "FirstLock",
            dependencies: [.product(name: "Fencelock", package: "Fencelock")]
        )
    ]
)
