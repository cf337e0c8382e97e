package demo

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/gomodule/redigo/redis"
)

// privateStart limits the time for the start of the demo's own Redis.
const privateStart = 10 * time.Second

// startPrivate starts an installed Redis or Valkey for this run, without persistence. The server ends when this process ends.
func startPrivate(ctx context.Context, dir string) (addr string, stop func(), err error) {
	program, err := privateProgram()
	if err != nil {
		return "", nil, err
	}
	if addr, err = freeAddress(""); err != nil {
		return "", nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", nil, err
	}
	l := newLauncher()
	logFile := filepath.Join(dir, "redis.log")
	cmd, err := l.start([]string{program, "--bind", host, "--port", port, "--save", "", "--appendonly", "no", "--dir", dir},
		os.Environ(), logFile)
	if err != nil {
		l.close()
		return "", nil, fmt.Errorf("start %s: %w", program, err)
	}
	stop = func() {
		_ = cmd.Process.Kill() // SIGKILL is fine, because the server has no data to keep
		_ = cmd.Wait()
		l.close()
	}
	for deadline := time.Now().Add(privateStart); ; {
		if err = ping(ctx, addr); err == nil {
			return addr, stop, nil
		}
		if time.Now().After(deadline) || !pause(ctx, 20*time.Millisecond) {
			stop()
			return "", nil, fmt.Errorf("%s did not answer: %w; its log ends with:\n%s", program, err, tail(logFile))
		}
	}
}

func privateProgram() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNoServer
}

func ping(ctx context.Context, addr string) error {
	c, err := redis.DialContext(ctx, "tcp", addr, redis.DialConnectTimeout(time.Second), redis.DialReadTimeout(time.Second))
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = redis.DoContext(c, ctx, "PING")
	return err
}
