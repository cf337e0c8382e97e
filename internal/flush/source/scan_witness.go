package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"baton/internal/redisconn"

	"github.com/gomodule/redigo/redis"
)

// witness is the state of all masters of a deployment: their processes and slots. A pass is a SCAN over all keys. If the state is the same
// before and after a pass, the pass has read every key that existed during the whole pass.
//
// A SCAN cursor is valid only in the process that returned it. If a key moves between two masters during a pass, the pass may find it on
// neither of them.
type witness struct {
	nodes  []*redisconn.Server
	states []string // the state of each node
	doubt  error
}

// errMoving means that slots are being moved between masters.
var errMoving = errors.New("slots of the cluster are being moved between nodes")

// witness reads the state of every master.
func (s *Scan) witness(ctx context.Context) (w witness, err error) {
	if w.nodes, err = s.store.Masters(ctx); err != nil {
		return w, err
	}
	for _, node := range w.nodes {
		state, doubt, err := s.stateOf(ctx, node)
		if err != nil {
			return w, err
		}
		w.states = append(w.states, state)
		w.doubt = errors.Join(w.doubt, doubt)
	}
	return w, nil
}

// stateOf returns a text that identifies the process of a server and lists the server's slots. The result doubt is a reason why a pass over
// this server may miss keys.
func (s *Scan) stateOf(ctx context.Context, node *redisconn.Server) (state string, doubt, err error) {
	c, err := node.Borrow(ctx)
	if err != nil {
		return "", nil, err
	}
	defer c.Close() // returns it to the pool
	commands := []redisconn.Command{redisconn.Cmd("INFO", "server"), redisconn.Cmd("INFO", "replication")}
	if s.store.IsCluster() {
		commands = append(commands, redisconn.Cmd("CLUSTER", "NODES"))
	}
	replies, err := askAt(ctx, c, commands)
	if err != nil {
		return "", nil, err
	}
	var all strings.Builder
	for _, reply := range replies[:2] {
		text, err := redis.String(reply, nil)
		if err != nil {
			return "", nil, err
		}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if slices.Contains([]string{"run_id", "role", "master_replid"}, name) {
				fmt.Fprintf(&all, "%s %s\n", name, value)
			}
			if name == "role" && value != "master" {
				doubt = fmt.Errorf("redis %s is a %s, not a master", node.Address(), value)
			}
		}
	}
	if len(replies) > 2 {
		text, err := redis.String(replies[2], nil)
		if err != nil {
			return "", nil, err
		}
		slots, moving := redisconn.OwnSlots(text)
		all.WriteString(slots)
		if moving {
			doubt = errors.Join(doubt, fmt.Errorf("%w (redis %s)", errMoving, node.Address()))
		}
	}
	return all.String(), doubt, nil
}

// differs returns the reason why a pass between w and a later witness may have missed keys, or nil.
func (w witness) differs(later witness) error {
	if err := errors.Join(w.doubt, later.doubt); err != nil {
		return err
	}
	if !slices.Equal(w.nodes, later.nodes) {
		return errors.New("the keys moved to other nodes during the pass")
	}
	for i := range w.states {
		if w.states[i] != later.states[i] {
			return fmt.Errorf("redis %s was restarted, failed over or got other slots during the pass", w.nodes[i].Address())
		}
	}
	return nil
}
