package flushtest

import (
	"context"
	"slices"
	"sync"

	"baton/internal/flush"
)

// Script is a source that delivers the pages it is given, every time it is read. Tests
// of a pipeline use it where the fakes that keep a source's promises deliver too well.
type Script struct {
	Shard string // its Name
	Job   string // that made its stages; see flush.Stage
	Note  string // of its stages
	// On, if set, is told of each call before it is answered: "stage", "read", "done",
	// "discard", "backlog", and of each page that is handed over, "page" before that
	// and "taken" after it. Its error is the call's answer.
	On func(call string) error

	mu    sync.Mutex
	pages []flush.Page
	calls []string
}

// NewScript is a source that delivers these pages.
func NewScript(shard string, pages ...flush.Page) *Script {
	return &Script{Shard: shard, pages: pages}
}

// SetPages has the source deliver these pages.
func (s *Script) SetPages(pages ...flush.Page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages = pages
}

// Calls are those to Stage, Done and Discard.
func (s *Script) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *Script) on(call string) error {
	if s.On == nil {
		return nil
	}
	return s.On(call)
}

func (s *Script) changes(call string) error {
	s.mu.Lock()
	s.calls = append(s.calls, call)
	s.mu.Unlock()
	return s.on(call)
}

func (s *Script) now() []flush.Page {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pages
}

// Name implements flush.Source.
func (s *Script) Name() string { return s.Shard }

// Stage finds a stage if there are pages: see flush.Source.
func (s *Script) Stage(_ context.Context, newID, _ string) (flush.Stage, bool, error) {
	err := s.changes("stage")
	return flush.Stage{ID: newID, Job: s.Job, Note: s.Note}, len(s.now()) > 0, err
}

// Read hands over all pages: see flush.Source.
func (s *Script) Read(_ context.Context, _ flush.Stage, yield func(flush.Page) error) error {
	if err := s.on("read"); err != nil {
		return err
	}
	for _, p := range s.now() {
		if err := s.on("page"); err != nil {
			return err
		}
		if err := yield(p); err != nil {
			return err
		}
		if err := s.on("taken"); err != nil {
			return err
		}
	}
	return nil
}

// Done removes nothing: see flush.Releaser.
func (s *Script) Done(context.Context, flush.Stage, flush.Page) error { return s.changes("done") }

// Discard removes nothing: see flush.Discarder.
func (s *Script) Discard(context.Context, flush.Stage) error { return s.changes("discard") }

// Backlog counts the pages: see flush.Counted.
func (s *Script) Backlog(context.Context) (int64, error) {
	err := s.on("backlog")
	return int64(len(s.now())), err
}
