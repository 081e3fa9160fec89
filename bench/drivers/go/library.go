package main

import (
	"context"
	"log"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

const (
	usual  = 30 * time.Second
	unsaid = 0 // the lease of a user who names none
	stock  = "bench:stock"
)

var takeOne = redis.NewScript(`
	if tonumber(redis.call("GET", KEYS[1])) < 1 then return 0 end
	redis.call("DECR", KEYS[1])
	return 1`)

// A library is connected, and opens locks.
type library struct {
	module string
	bare   bool
	// The first server, where there are several.
	client *redis.Client
	lock   func(key string, lease time.Duration) lock
}

// connect takes one URL, or, for redsync, those of all servers of a quorum with commas between.
func connect(name, urls string) *library {
	var clients []*redis.Client
	var pools []pool.Pool
	for _, url := range strings.Split(urls, ",") {
		options, err := redis.ParseURL(url)
		must(err)
		// Otherwise the pool fills only when callers crowd, and they would wait for it.
		options.MinIdleConns = 10 * runtime.GOMAXPROCS(0)
		client := redis.NewClient(options)
		must(client.Ping(context.Background()).Err())
		clients = append(clients, client)
		pools = append(pools, goredis.NewPool(client))
	}
	client := clients[0]
	l := &library{client: client}
	switch name {
	case "redsync":
		l.module = "github.com/go-redsync/redsync/v4"
		l.lock = openRedsync(redsync.New(pools...))
	case "redislock":
		l.module = "github.com/bsm/redislock"
		l.lock = openRedislock(redislock.New(client))
	case "go-redis":
		l.module = "github.com/redis/go-redis/v9"
		l.lock = openBare(client)
		l.bare = true
	default:
		log.Fatalf("there is no %s here", name)
	}
	return l
}

func (l *library) version() string {
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if module.Path == l.module {
				return module.Version
			}
		}
	}
	return "unknown"
}

// sellOne says whether there was one to sell.
func (l *library) sellOne(lock lock) bool {
	ctx := context.Background()
	lock.acquire()
	defer lock.release()
	left, err := l.client.Get(ctx, stock).Int()
	must(err)
	if left > 0 {
		must(l.client.Set(ctx, stock, left-1, 0).Err())
	}
	return left > 0
}

// take sells without a lock.
func (l *library) take(time.Time) (t tally) {
	for {
		taken, err := takeOne.Run(context.Background(), l.client, []string{stock}).Int()
		must(err)
		if taken == 0 {
			return t
		}
		t.count++
	}
}
