package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
)

// lease is what a leader leaves on its host, so that after a crash the lock can be
// released at once instead of running out.
type lease struct {
	LockKey string `json:"lock_key"`
	Owner   string `json:"owner"`
	Epoch   int64  `json:"epoch"`
}

// leasePath is lease.json in the first of systemd's runtime directories; false without one.
func leasePath(getenv func(string) (string, bool)) (string, bool) {
	dirs, _ := getenv("RUNTIME_DIRECTORY")
	dir, _, _ := strings.Cut(dirs, ":") // a unit may have several
	if dir == "" {
		return "", false // not "lease.json": that would be a file wherever the daemon was started
	}
	return filepath.Join(dir, "lease.json"), true
}

// leasePathOf is the file for another lock than the node's own, beside that one's.
func leasePathOf(own, lockKey string) string {
	sum := sha256.Sum256([]byte(lockKey))
	return strings.TrimSuffix(own, ".json") + "-" + hex.EncodeToString(sum[:6]) + ".json"
}

// leasePaths are all lease files that there are.
func leasePaths(own string) []string {
	others, _ := filepath.Glob(strings.TrimSuffix(own, ".json") + "-*.json") // the pattern is good
	return append([]string{own}, others...)
}

func writeLease(path string, l lease) error {
	text, err := json.Marshal(l)
	if err == nil {
		err = renameio.WriteFile(path, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write %s, by which a crash would be followed by a takeover at once: %w", path, err)
	}
	return nil
}

// readLease returns false if there is none: the node did not lead, or has released.
func readLease(path string) (lease, bool, error) {
	var l lease
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil {
		return l, false, fmt.Errorf("read %s: %w", path, err)
	}
	return l, true, nil
}

func removeLease(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}
