// Package held passes to a command, in its environment, the locks that this command and its outer commands hold. An outer command has
// started this command, directly or through other commands. `baton lock` and the command of a job use the same variable.
package held

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Locks is the environment variable with all locks that a command and its outer commands hold.
const Locks = "BATON_LOCKS"

// Lock is one held lock.
type Lock struct {
	Key, Owner string
	Epoch      int64
}

// String returns the lock in the form of the variable, "name=owner:epoch". Special characters in the name are encoded as in the query of a
// URL.
func (l Lock) String() string {
	return fmt.Sprintf("%s=%s:%d", url.QueryEscape(l.Key), l.Owner, l.Epoch)
}

// Read reads the locks from an environment.
func Read(env []string) ([]Lock, error) {
	var locks []Lock
	for word := range strings.FieldsSeq(Variable(env, Locks)) {
		name, term, _ := strings.Cut(word, "=")
		owner, epoch, ok := strings.Cut(term, ":")
		key, err := url.QueryUnescape(name)
		number, parseErr := strconv.ParseInt(epoch, 10, 64)
		if err != nil || parseErr != nil || !ok || key == "" || owner == "" {
			return nil, fmt.Errorf("$%s has a value that baton lock did not write (at %q): unset it", Locks, word)
		}
		locks = append(locks, Lock{key, owner, number})
	}
	return locks, nil
}

// Variable returns the value of a variable in an environment. If the variable occurs several times, the last value counts.
func Variable(env []string, name string) (value string) {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}
