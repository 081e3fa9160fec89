// swift-tools-version:5.9
// `scripts/uniffi generate` writes Sources/Fencelock/Generated.swift, Sources/FencelockFFI and lib first.
import PackageDescription

let package = Package(
    name: "Fencelock",
    platforms: [.macOS(.v12), .iOS(.v15)],
    products: [
        .library(name: "Fencelock", targets: ["Fencelock"])
    ],
    targets: [
        .systemLibrary(name: "FencelockFFI", path: "Sources/FencelockFFI"),
        .target(
            name: "Fencelock",
            dependencies: ["FencelockFFI"],
            path: "Sources/Fencelock",
            linkerSettings: [
                .unsafeFlags(["-L\(Context.packageDirectory)/lib"]),
                .linkedLibrary("fencelock_uniffi"),
            ]
        ),
        .testTarget(
            name: "FencelockTests",
            dependencies: ["Fencelock"],
            path: "Tests/FencelockTests"
        ),
    ]
)
