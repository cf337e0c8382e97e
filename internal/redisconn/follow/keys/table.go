package keys

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
)

// Table contains the commands that one server knows. It is safe for concurrent use.
type Table struct{ commands map[string]*command }

// command describes the keys that one command changes.
type command struct {
	special special
	specs   []spec
	nothing bool                // the command changes no key
	subs    map[string]*command // the subcommands of a command such as XGROUP
}

// Read asks a server for its commands.
func Read(ctx context.Context, c redis.Conn) (*Table, error) {
	entries, err := redis.Values(redis.DoContext(c, ctx, "COMMAND"))
	if err != nil {
		return nil, fmt.Errorf("ask for the server's commands: %w", redisconn.Explain(err))
	}
	t := &Table{commands: make(map[string]*command, len(entries))}
	for _, entry := range entries {
		name, cmd, err := parse(entry)
		if err != nil {
			return nil, fmt.Errorf("read the server's list of commands: %w", err)
		}
		t.commands[name] = cmd
	}
	return t, nil
}

// parse reads one entry of the reply to COMMAND: name, arity, flags, first key, last key and step. Since 6.0 the ACL categories
// follow, and since 7.0 hints, key specifications and subcommands.
func parse(entry any) (name string, c *command, err error) {
	fields, err := redis.Values(entry, nil)
	if err != nil || len(fields) < 6 {
		return "", nil, fmt.Errorf("an entry has %d fields: %w", len(fields), err)
	}
	var flags []string
	var legacy [3]int
	var arity int
	if _, err = redis.Scan(fields[:6], &name, &arity, &flags, &legacy[0], &legacy[1], &legacy[2]); err != nil {
		return "", nil, err
	}
	name = strings.ToLower(name)
	c = &command{special: specials[name]}
	replicates := slices.Contains(flags, "write") || slices.Contains(flags, "may_replicate")
	switch {
	case c.special != ordinary:
		return name, c, nil
	case slices.Contains(keyless, name):
		c.nothing = true
		return name, c, nil
	case len(fields) > 8: // the flag for writes is not enough, because PFCOUNT has it, too
		c.specs, err = parseSpecs(fields[8])
		c.nothing = !replicates && len(c.specs) == 0
	case !replicates:
		c.nothing = true
	case slices.Contains(flags, "movablekeys") && !slices.Contains(storing, name):
		c.special = unknown
	case legacy[0] > 0:
		c.specs = []spec{legacySpec(legacy)}
	}
	if err != nil || len(fields) < 10 {
		return name, c, err
	}
	subs, err := redis.Values(fields[9], nil)
	if err != nil {
		return name, c, err
	}
	for _, sub := range subs {
		full, cmd, err := parse(sub)
		if err != nil {
			return name, c, err
		}
		if c.subs == nil {
			c.subs, c.nothing = map[string]*command{}, false
		}
		_, own, _ := strings.Cut(full, "|")
		c.subs[own] = cmd
	}
	return name, c, nil
}

// keyless lists commands that are replicated although they change no key.
var keyless = []string{"publish", "spublish", "function", "script"}

// storing lists commands that versions before 7.0 describe with movable keys. The movable keys are the keys that the command reads.
// The first argument of such a command is the key that the command writes.
var storing = []string{"zunionstore", "zinterstore", "zdiffstore"}

// find returns the command, or the subcommand, that the arguments name. It returns nil for an unknown command.
func (t *Table) find(args [][]byte) *command {
	var small [64]byte
	c := t.commands[string(lower(&small, args[0]))]
	if c == nil || c.subs == nil {
		return c
	}
	if len(args) < 2 || args[1] == nil {
		return nil
	}
	return c.subs[string(lower(&small, args[1]))]
}

// lower returns a name in lower case, or nil if the name is longer than the longest name of a command.
func lower(into *[64]byte, name []byte) []byte {
	if len(name) > len(into) {
		return nil
	}
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		into[i] = c
	}
	return into[:len(name)]
}
