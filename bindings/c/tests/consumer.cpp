// The header in C++17, and a guard as a C++ program would write it.
#include <fencelock.h>

#include <cstdio>
#include <memory>
#include <string>

template <typename T, fencelock_status (*Free)(T *)> struct Freed {
    void operator()(T *handle) const { Free(handle); }
};
using Client = std::unique_ptr<fencelock_client, Freed<fencelock_client, fencelock_client_free>>;
using Lock = std::unique_ptr<fencelock_lock, Freed<fencelock_lock, fencelock_lock_free>>;
using Hold = std::unique_ptr<fencelock_hold, Freed<fencelock_hold, fencelock_hold_free>>;

int main(int argc, char **argv) {
    const std::string url = argc > 1 ? argv[1] : "memory:";
    fencelock_connect_options connect = FENCELOCK_CONNECT_OPTIONS_INIT;
    connect.lease_ns = 10 * FENCELOCK_SECOND;
    fencelock_client *client = nullptr;
    fencelock_error *error = nullptr;
    if (fencelock_connect(url.data(), url.size(), &connect, &client, &error) != FENCELOCK_OK) {
        std::fprintf(stderr, "%s\n", fencelock_error_message(error));
        return 1;
    }
    const Client client_freed(client);
    fencelock_lock *lock = nullptr;
    if (fencelock_client_lock(client, "from C++", FENCELOCK_NTS, &lock, nullptr)) return 1;
    const Lock lock_freed(lock);
    {
        fencelock_acquire_options options = FENCELOCK_ACQUIRE_OPTIONS_INIT;
        options.timeout_ns = FENCELOCK_SECOND;
        fencelock_hold *hold = nullptr;
        if (fencelock_lock_acquire(lock, &options, &hold, nullptr)) return 1;
        const Hold hold_freed(hold);
        std::uint64_t token = 0;
        if (fencelock_hold_check(hold, &token, nullptr) || token == 0) return 1;
    }
    fencelock_completion now = FENCELOCK_COMPLETION_INIT;
    if (now.ended || fencelock_client_close(client, 0, nullptr)) return 1;
    std::printf("ok fencelock %s from C++\n", fencelock_version());
    return 0;
}
