package main

import (
	"encoding/json"
	"testing"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/diagnose"
)

func TestStagesThatNoJobFlushesAreListedAndDropped(t *testing.T) {
	l := newDeadLab(t)
	l.want(cmdline.ExitOK, "every stage has a job that flushes it\n", "", "stage", "list")
	for _, c := range [][]any{
		{"HSET", "{baton}:stages", "views", "views", "changed:old", "old"},
		{"HSET", "{views}:baton:stage", "1", "5"},
		{"HSET", "{changed:old}:baton:meta", "id", "b1", "parts", "0", "job", "older"},
		{"SADD", "{changed:old}:baton:stage", "1", "2"},
	} {
		l.send(c[0].(string), c[1:]...)
	}
	var left []diagnose.LeftStage
	if err := json.Unmarshal([]byte(l.does("stage", "list", "-o", "json")), &left); err != nil || len(left) != 1 || left[0] != (diagnose.LeftStage{Key: "changed:old", Job: "older", BatchID: "b1", Records: 2}) {
		t.Errorf("%+v, %v", left, err)
	}
	l.fails(cmdline.ExitOK, "changed:old  2        older          b1", "stage", "list")
	l.fails(cmdline.ExitOK, "2 changes of changed:old, staged by job older, are flushed by no job  → baton stage list", "status")
	l.fails(cmdline.ExitUsage, "add --yes", "stage", "drop", "changed:old")
	l.fails(cmdline.ExitFailure, `there is no stage at "views"`, "stage", "drop", "views", "--yes")
	l.fails(cmdline.ExitOK, "2 changes of job older dropped", "stage", "drop", "changed:old", "--yes")
	l.want(cmdline.ExitOK, "every stage has a job that flushes it\n", "", "stage", "list")
	if n, err := l.redis.Do("EXISTS", "{changed:old}:baton:stage", "{changed:old}:baton:meta", "{views}:baton:stage"); n != int64(1) {
		t.Errorf("%v keys are left, %v; want the one of a job", n, err)
	}
}

// TestAPlaceInAStoreThatIsNotConfiguredIsNotCalledEmpty checks that stages in a store that is no longer configured are reported as unknown.
func TestAPlaceInAStoreThatIsNotConfiguredIsNotCalledEmpty(t *testing.T) {
	l := newDeadLab(t)
	for _, at := range []string{"sales:0", "sales:1"} {
		l.send("HSET", "{baton}:stages", "\x00shop\x00"+at, "sales")
	}
	l.fails(cmdline.ExitFailure, `it is unknown whether store "shop" holds staged changes of job "sales": the store is not configured any more; `+
		"add it under stores again\n", "stage", "list")
}
