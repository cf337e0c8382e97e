package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/idlist"
	"baton/internal/flush/source/paging"
	"baton/internal/flush/source/spec"
	"baton/internal/redisconn"
)

// ScanOptions describe a scan job. Such a job reads all keys that match a pattern in each pass, and needs no index of changes.
type ScanOptions struct {
	Job string
	Key string // pattern of the keys: "session:<id>", "stock:<shop>:<item>"
	// Value is the type of the keys' values: "hash", "string", "json" (an object in a string), "set" or "zset". A key of another type is no
	// row and is ignored. Default: "hash".
	Value string
	// Inputs are the parts of a record; ScanInputs lists the possible ones.
	Inputs []string
	// PageRows and BatchBytes are the desired rows and bytes of a page, which is one transaction. Default 5000, and 8 MiB.
	PageRows, BatchBytes int
	// MemoryBudget is the maximum memory, in bytes, of the keys that are held while reading. Default 32 MiB.
	MemoryBudget int
	// Lanes is the number of lanes that share the rows, by their keys. Default 1.
	Lanes int
}

// Scan reads all keys of a pattern. It is a flush.Source and a flush.Sweeper.
//
// Nothing is staged. Every Read is a new pass over all masters: if a key changes after it was read, the next pass reads the change. A pass
// reads every key that exists from the beginning to the end of the pass. So if a complete pass did not write a row, the row's key is
// missing, or was added during the pass. StillMissing finds out which of the two is true. Writing a row twice is harmless, so pages need no
// ledger.
//
// The number of a pass is the time of its beginning, in microseconds since 1970. No two passes of one process have the same number. The
// clocks of two nodes may give the same number, or a lower number to a later pass. In that case a sweep may find fewer vanished rows, and
// the next pass finds the others. A sweep only checks whether two numbers are equal, and never which number is higher.
type Scan struct {
	store    *redisconn.Store
	job      string
	pattern  spec.KeyPattern
	value    string
	slots    []slot
	hashes   rowReader
	fields   []string // the fields of a hash, or the members of an object
	whole    bool     // whether an input needs the whole value, a member or a score
	pageRows int
	bytes    int // the desired bytes of a page
	budget   int
	lanes    int

	mu   sync.Mutex
	pass pass // the newest pass
}

// pass is one pass over all keys.
type pass struct {
	stage      string
	generation int64
	ended      bool
	missed     error // the reason why the pass may have missed keys
}

// NewScan checks the options and does not connect.
func NewScan(store *redisconn.Store, o ScanOptions) (*Scan, error) {
	if o.Job == "" {
		return nil, errors.New("a flush source needs the name of its job")
	}
	pattern, err := spec.ParseKeyPattern(o.Key)
	if err != nil {
		return nil, err
	}
	s := &Scan{
		store: store, job: o.Job, pattern: pattern, value: cmp.Or(o.Value, "hash"),
		pageRows: positive(o.PageRows, defaultPageRows),
		bytes:    paging.Bytes(o.BatchBytes, o.Lanes),
		budget:   positive(o.MemoryBudget, defaultMemoryBudget),
		lanes:    positive(o.Lanes, 1),
	}
	if err := s.setInputs(o.Inputs); err != nil {
		return nil, err
	}
	s.hashes = rowReader{redis: store, inputs: s.fields, fields: s.fields} // the ids of this reader are whole keys
	return s, nil
}

// Name returns the pattern.
func (s *Scan) Name() string { return s.pattern.String() }

// Stage begins a pass. It freezes nothing, and does not continue an interrupted pass: the new pass writes all rows again.
func (s *Scan) Stage(_ context.Context, newID, _ string) (flush.Stage, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass = pass{stage: newID, generation: max(time.Now().UnixMicro(), s.pass.generation+1)}
	return flush.Stage{ID: newID}, true, nil
}

// Read yields the rows of all keys, page by page. It collects and sorts as many keys as fit the memory budget, so that each of their pages
// is in key order, and then continues the scan.
func (s *Scan) Read(ctx context.Context, st flush.Stage, yield func(flush.Page) error) error {
	current, err := s.current(st)
	if err != nil {
		return err
	}
	before, err := s.witness(ctx)
	if err != nil {
		return s.fail("find the masters of the keys of", err)
	}
	rows := newScanRows(s, current.generation, yield)
	for _, node := range before.nodes {
		if err := s.readNode(ctx, node, rows); err != nil {
			return err
		}
	}
	if err := rows.flush(); err != nil {
		return err
	}
	after, err := s.witness(ctx)
	if err != nil {
		return s.fail("find the masters of the keys of", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass.ended, s.pass.missed = true, before.differs(after)
	return nil
}

// readNode reads the keys of one master.
func (s *Scan) readNode(ctx context.Context, node *redisconn.Server, rows *scanRows) error {
	c, err := node.Borrow(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	keys := s.keys()
	return idlist.Pass{
		Page: s.pageRows, Lanes: s.lanes, Group: s.group(), Budget: s.budget, About: idlist.Unknown,
		Collect: func(ctx context.Context, ids *idlist.List, most, budget int) (bool, error) {
			if err := keys.next(ctx, c, ids, budget, most); err != nil {
				return false, s.fail("scan", err)
			}
			return keys.Cursor != "0", nil
		},
		Use: func(lane int, ids []string) error { return rows.read(ctx, c, lane, ids) },
	}.Run(ctx)
}

// Matches reports whether a key matches the pattern. It keeps no reference to the key.
func (s *Scan) Matches(key string) bool {
	var captures [8]string
	_, ok := s.pattern.Match(key, captures[:0])
	return ok
}

// ReadKeys reads some keys, sorted in the order of a database's key. The record of a missing key is Gone.
func (s *Scan) ReadKeys(ctx context.Context, c redisconn.Conn, keys []string, yield func(flush.Page) error) error {
	ids := &idlist.List{}
	for _, key := range keys {
		id := []byte(key)
		if captures, _ := s.pattern.Match(key, nil); len(captures) == 1 { // so that numbers are sorted as numbers
			id = []byte(captures[0])
		}
		ids.Add(id)
	}
	ids.Sort()
	rows := newScanRows(s, 0, yield)
	rows.gone = true
	for _, some := range ids.Pages(s.group(), 1) {
		if err := rows.read(ctx, c, 0, some); err != nil {
			return err
		}
	}
	return rows.flush()
}

// current returns the pass of a stage.
func (s *Scan) current(st flush.Stage) (pass, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pass.stage != st.ID || st.ID == "" {
		return pass{}, fmt.Errorf("pass %s over %q: %w", st.ID, s.pattern, flush.ErrStaleStage)
	}
	return s.pass, nil
}

// fail adds the action, the key and the remedy to an error.
func (s *Scan) fail(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q for job %q: %w", doing, s.pattern, s.job, redisconn.Explain(err))
}

var scanSpec = Spec{
	Kind:            spec.Named("scan"),
	clusterCommands: []string{"CLUSTER NODES"}, // CLUSTER NODES shows whether slots are being moved
	inputs:          func(o Options) (row.Inputs, error) { return ScanInputs(o.Key, o.Value) },
	policy: func(o Options) (flush.Policy, error) {
		switch o.Vanished {
		case "", "ignore":
			return flush.Policy{}, nil
		case "delete":
			return flush.Policy{VanishedPct: cmp.Or(o.MaxPct, 10)}, nil
		}
		return flush.Policy{}, fmt.Errorf("vanished: %q is unknown: use ignore or delete", o.Vanished)
	},
	commands: func(o Options, _ string) []string {
		read := map[string][]string{
			"hash": hashCommands, "string": {"GET R"}, "json": {"GET R"},
			"set": {"SSCAN R 0", "SISMEMBER R m"}, "zset": {"ZSCAN R 0", "ZSCORE R m"},
		}
		return append([]string{"INFO", "SCAN 0", "TYPE R"}, read[o.Value]...) // witness needs INFO
	},
	open: func(s *redisconn.Store, key string, o Options, inputs []string) (flush.Source, error) {
		return NewScan(s, ScanOptions{
			Job: o.Job, Key: key, Value: o.Value, Inputs: inputs, PageRows: o.Rows, BatchBytes: o.Bytes, Lanes: o.Lanes,
		})
	},
}
