package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// slowCommand is one entry of Redis' slow log: the time for which Redis served no other client.
type slowCommand struct {
	Took time.Duration
	Name string
}

func (s slowCommand) String() string {
	if s.Took == 0 {
		return "< 0.1 ms"
	}
	return fmt.Sprintf("%.1f ms (%s)", float64(s.Took.Microseconds())/1000, s.Name)
}

// slowlog reads Redis' slow log.
type slowlog struct{ conn redis.Conn }

func watchRedis(addr string) (*slowlog, error) {
	conn, err := dialRedis(addr)
	return &slowlog{conn}, err
}

func (s *slowlog) close() { _ = s.conn.Close() }

func (s *slowlog) reset() error {
	_, err := s.conn.Do("SLOWLOG", "RESET")
	return err
}

// longest returns the longest command of all clients except one client, which is the bench itself.
func (s *slowlog) longest(except string) (slowCommand, error) {
	var most slowCommand
	entries, err := redis.Values(s.conn.Do("SLOWLOG", "GET", 100_000))
	if err != nil {
		return most, err
	}
	for _, e := range entries {
		entry, err := redis.Values(e, nil)
		if err != nil {
			return most, err
		}
		var id, at, micros int64
		var args []string
		var address, client string
		if _, err := redis.Scan(entry, &id, &at, &micros, &args, &address, &client); err != nil {
			return most, err
		}
		if took := time.Duration(micros) * time.Microsecond; client != except && took > most.Took {
			most = slowCommand{Took: took, Name: nameOf(args)}
		}
	}
	return most, nil
}

// nameOf returns a command's name. For a script it also returns the beginning of the script's hash, and the first key.
func nameOf(args []string) string {
	name := strings.ToUpper(args[0])
	if name != "EVALSHA" || len(args) < 4 || args[2] == "0" {
		return name
	}
	return fmt.Sprintf("%s %.6s %s", name, args[1], args[3])
}

// infoNumber finds a number in the reply of INFO.
func infoNumber(info, name string) (int64, error) {
	for l := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(l, name+":"); ok {
			return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, fmt.Errorf("INFO has no %s", name)
}
