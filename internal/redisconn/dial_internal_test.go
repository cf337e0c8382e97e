package redisconn

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestURLsSayWhichServer(t *testing.T) {
	for raw, want := range map[string]serverAddress{
		"redis://127.0.0.1:6379/0":        {network: "tcp", address: "127.0.0.1:6379"},
		"redis://db1":                     {network: "tcp", address: "db1:6379"},
		"valkey://db1:7000/":              {network: "tcp", address: "db1:7000"},
		"redis://user:secret@db1:7000/11": {network: "tcp", address: "db1:7000", database: 11},
		"rediss://db1:6380/3":             {network: "tcp", address: "db1:6380", database: 3, encrypted: true},
		"valkeys://[::1]:6380":            {network: "tcp", address: "[::1]:6380", encrypted: true},
		"redis://[fe80::1]":               {network: "tcp", address: "[fe80::1]:6379"},
		"unix:///run/redis/redis.sock":    {network: "unix", address: "/run/redis/redis.sock"},
		"unix:///run/redis.sock?db=4":     {network: "unix", address: "/run/redis.sock", database: 4},
	} {
		if got, err := parseURL(raw); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", raw, got, err, want)
		}
	}
	for _, raw := range []string{
		"", "127.0.0.1:6379", "redis://", "http://db1", "redis://:secret@db1:port/0", "redis://user:secret@db1/x",
		"redis://user:secret@db1/-1", "unix://run/redis.sock", "unix://", "unix:///s?db=x",
	} {
		if _, err := parseURL(raw); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v; want it refused, and no secret told", raw, err)
		}
	}
}

func TestExactlyOneDeploymentIsNamed(t *testing.T) {
	sentinel := &SentinelOptions{Master: "m", Addresses: []string{"s1:26379"}}
	for name, o := range map[string]Options{
		"none":                    {},
		"url and sentinel":        {URL: "redis://db1", Sentinel: sentinel},
		"url and cluster":         {URL: "redis://db1", Cluster: []string{"c1:7000"}},
		"sentinel and cluster":    {Sentinel: sentinel, Cluster: []string{"c1:7000"}},
		"a master without a name": {Sentinel: &SentinelOptions{Addresses: []string{"s1:26379"}}},
		"no sentinels":            {Sentinel: &SentinelOptions{Master: "m"}},
		"a sentinel without port": {Sentinel: &SentinelOptions{Master: "m", Addresses: []string{"s1"}}},
		"a node without port":     {Cluster: []string{"c1"}},
	} {
		if _, err := Open(o); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// slotOf returns the slot of a key by the rule in the specification of Redis Cluster: the CRC16 (XMODEM) of the hash tag, or of the whole
// key.
func slotOf(key string) uint16 {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			carry := crc & 0x8000
			crc <<= 1
			if carry != 0 {
				crc ^= 0x1021
			}
		}
	}
	return crc % 16384
}

func TestASlotIsThatOfTheSpecification(t *testing.T) {
	if got := slotOf("123456789"); got != 12739 {
		t.Fatalf("slot of the specification's example: %d", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z{}]{0,12}`)).Draw(t, "key")
		if got, want := Slot(key), int(slotOf(key)); got != want {
			t.Fatalf("slot of %q: %d, want %d", key, got, want)
		}
	})
}

// Servers that know the same facts are asked one after the other. A dead server costs no time, a server that hangs costs a moment, and no
// server uses up the whole time limit.
func TestAServerThatHangsDoesNotUseUpTheTimeOfTheOthers(t *testing.T) {
	const patience = 200 * time.Millisecond
	down := errors.New("refused")
	after := func(d time.Duration, err error) func(context.Context) error {
		return func(ctx context.Context) error {
			select {
			case <-time.After(d):
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	for name, c := range map[string]struct {
		servers []func(context.Context) error
		took    time.Duration
		at      int // -1: none
	}{
		"the first answers": {[]func(context.Context) error{after(time.Millisecond, nil), after(0, nil)}, time.Millisecond, 0},
		"the first is down": {[]func(context.Context) error{after(0, down), after(time.Millisecond, nil)}, time.Millisecond, 1},
		"the first hangs": {[]func(context.Context) error{after(time.Hour, nil), after(time.Millisecond, nil)}, patience +
			time.Millisecond, 1},
		"the first two hang": {[]func(context.Context) error{after(time.Hour, nil), after(time.Hour, nil), after(0, nil)},
			2 * patience, 2},
		"the first is slow":          {[]func(context.Context) error{after(3*patience/2, nil), after(time.Hour, nil)}, 3 * patience / 2, 0},
		"all are down":               {[]func(context.Context) error{after(0, down), after(0, down)}, 0, -1},
		"all hang, until time is up": {[]func(context.Context) error{after(time.Hour, nil), after(time.Hour, nil)}, time.Second, -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				var addresses []string
				for i := range c.servers {
					addresses = append(addresses, string(rune('a'+i)))
				}
				began := time.Now()
				got, at, err := firstOf(ctx, addresses, patience, func(ctx context.Context, address string) (string, error) {
					return address, c.servers[address[0]-'a'](ctx)
				})
				if took := time.Since(began); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if c.at < 0 {
					if err == nil {
						t.Error("there is an answer, and nobody has given one")
					}
					return
				}
				if err != nil || at != c.at || got != addresses[at] {
					t.Errorf("answer %q of server %d, %v; want that of %d", got, at, err, c.at)
				}
			})
		})
	}
}
