package crash

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

// Lease is a leader's note on its host. With it the lock can be released at once after a
// crash, instead of running out.
type Lease struct {
	LockKey string `json:"lock_key"`
	Owner   string `json:"owner"`
	Epoch   int64  `json:"epoch"`
}

// LeasePath is lease.json in the first of systemd's runtime directories; false without one.
func LeasePath(getenv func(string) (string, bool)) (string, bool) {
	dirs, _ := getenv("RUNTIME_DIRECTORY")
	dir, _, _ := strings.Cut(dirs, ":") // a unit may have several
	if dir == "" {
		return "", false // not "lease.json": that would be a file wherever the daemon was started
	}
	return filepath.Join(dir, "lease.json"), true
}

// LeasePathOf is the file for another lock than the node's own, beside that one's.
func LeasePathOf(own, lockKey string) string {
	sum := sha256.Sum256([]byte(lockKey))
	return strings.TrimSuffix(own, ".json") + "-" + hex.EncodeToString(sum[:6]) + ".json"
}

// leasePaths are all lease files that there are.
func leasePaths(own string) []string {
	others, _ := filepath.Glob(strings.TrimSuffix(own, ".json") + "-*.json") // the pattern is good
	return append([]string{own}, others...)
}

// WriteLease replaces the file.
func WriteLease(path string, l Lease) error {
	text, err := json.Marshal(l)
	if err == nil {
		err = renameio.WriteFile(path, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write %s, by which a crash would be followed by a takeover at once: %w", path, err)
	}
	return nil
}

// ReadLease returns false if the file does not exist: the node did not lead, or has released.
func ReadLease(path string) (Lease, bool, error) {
	var l Lease
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

// RemoveLease removes the file. A missing file is no error.
func RemoveLease(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}
