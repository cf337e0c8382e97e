package stdsql

import (
	"context"
	"strings"

	"baton/internal/flush/sql"
)

// bundleRows and bundleBytes limit one statement that bundle makes: the number of its rows, and the bytes of their texts.
const (
	bundleRows  = 64
	bundleBytes = 128 << 10
)

// bundle runs the first tasks as one statement if they insert into the same table. It returns the number of these tasks, and whether they
// are done. The tasks are not done if a row exists already or is refused. The caller then runs the tasks one by one to find that row.
func (s *Session) bundle(ctx context.Context, tasks []sql.Task) (n int, done bool, err error) {
	if n = s.alike(tasks); n < 2 {
		return 1, false, nil
	}
	ctx, end := s.limit(ctx)
	defer func() { err = end(err) }()
	text := s.Parent.Queries[tasks[0].Query]
	insert, values, _ := strings.Cut(text, " VALUES ")
	var args []any
	for _, t := range tasks[:n] {
		args = append(args, t.Args...)
	}
	_, err = s.Exec(ctx, insert+" VALUES "+sql.Repeat(values, n), args)
	if err != nil && (s.Parent.Duplicate(err) || s.Parent.Refused(err)) {
		return n, false, nil
	}
	return n, err == nil, err
}

// alike returns how many of the first tasks insert into the same table and need no result. The number is a power of two, so that few
// different statements are prepared.
func (s *Session) alike(tasks []sql.Task) int {
	query := tasks[0].Query
	if !s.Parent.Bundles || !strings.Contains(s.Parent.Queries[query], " VALUES (") {
		return 0
	}
	n, bytes := 0, 0
	for n < len(tasks) && n < bundleRows && tasks[n].Query == query && tasks[n].Once && tasks[n].Then == nil {
		for _, a := range tasks[n].Args {
			text, _ := a.(string)
			bytes += len(text)
		}
		if bytes > bundleBytes {
			break
		}
		n++
	}
	full := 1
	for full*2 <= n {
		full *= 2
	}
	return full
}
