package main

import (
	"context"
	"math"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"
)

// A lock serves one caller. What it fails at ends the process.
type lock interface {
	acquire()
	release()
}

type redsyncLock struct{ *redsync.Mutex }

func openRedsync(client *redsync.Redsync) func(string, time.Duration) lock {
	return func(key string, lease time.Duration) lock {
		options := []redsync.Option{redsync.WithTries(math.MaxInt)}
		if lease != unsaid {
			options = append(options, redsync.WithExpiry(lease))
		}
		return redsyncLock{client.NewMutex(key, options...)}
	}
}

func (l redsyncLock) acquire() { must(l.Lock()) }

func (l redsyncLock) release() {
	_, err := l.Unlock()
	must(err)
}

// redislock gives up after a TTL, unless its context has a deadline: here is one in 292 years.
var always, _ = context.WithTimeout(context.Background(), math.MaxInt64)

var retry = &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)}

type redislockLock struct {
	client *redislock.Client
	key    string
	lease  time.Duration
	held   *redislock.Lock
}

func openRedislock(client *redislock.Client) func(string, time.Duration) lock {
	return func(key string, lease time.Duration) lock {
		return &redislockLock{client: client, key: key, lease: orUsual(lease)}
	}
}

func (l *redislockLock) acquire() {
	held, err := l.client.Obtain(always, l.key, l.lease, retry)
	must(err)
	l.held = held
}

func (l *redislockLock) release() { must(l.held.Release(context.Background())) }

type bareLock struct {
	client *redis.Client
	key    string
	lease  time.Duration
}

func openBare(client *redis.Client) func(string, time.Duration) lock {
	return func(key string, lease time.Duration) lock {
		return bareLock{client, key, orUsual(lease)}
	}
}

func (l bareLock) acquire() {
	for {
		taken, err := l.client.SetNX(context.Background(), l.key, "held", l.lease).Result()
		must(err)
		if taken {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (l bareLock) release() { must(l.client.Del(context.Background(), l.key).Err()) }

func orUsual(lease time.Duration) time.Duration {
	if lease == unsaid {
		return usual
	}
	return lease
}
