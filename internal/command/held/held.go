// Package held is how a command is told which locks it, and the commands around it, hold:
// in its environment. `baton lock` and the command of a job are told in the same words.
package held

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Locks is the variable with all the locks that a command and those around it hold.
const Locks = "BATON_LOCKS"

// Lock is one of them.
type Lock struct {
	Key, Owner string
	Epoch      int64
}

// String is the word for it: name=owner:epoch, in the name % for other characters than letters.
func (l Lock) String() string {
	return fmt.Sprintf("%s=%s:%d", url.QueryEscape(l.Key), l.Owner, l.Epoch)
}

// Read finds the locks in an environment.
func Read(env []string) ([]Lock, error) {
	var locks []Lock
	for word := range strings.FieldsSeq(Variable(env, Locks)) {
		name, term, _ := strings.Cut(word, "=")
		owner, epoch, ok := strings.Cut(term, ":")
		key, err := url.QueryUnescape(name)
		number, parseErr := strconv.ParseInt(epoch, 10, 64)
		if err != nil || parseErr != nil || !ok || key == "" || owner == "" {
			return nil, fmt.Errorf("$%s is not what baton lock writes (at %q): unset it", Locks, word)
		}
		locks = append(locks, Lock{key, owner, number})
	}
	return locks, nil
}

// Variable finds a variable in an environment; the last one counts.
func Variable(env []string, name string) (value string) {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}
