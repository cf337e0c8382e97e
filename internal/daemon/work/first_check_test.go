package work

import (
	"context"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	recorder "go.uber.org/zap/zaptest/observer"

	"baton/internal/config"
	"baton/internal/flush/source/spec"
	"baton/internal/testsupport"
)

func TestTheFirstCheckIsMadeOnce(t *testing.T) {
	t.Parallel()
	redis, db := testsupport.StartRedis(t), testsupport.SQLite(t)
	c := config.Config{
		Node: config.Node{ID: "a"}, Redis: config.Redis{URL: redis.URL()},
		Databases: map[string]config.Database{"main": {Driver: db.Driver, DSNInline: db.DSN}},
		Jobs: []config.Job{{Name: "page-views", Schedule: "@every 1h", Flush: config.Flush{
			From:    config.From{Type: spec.Counters, Key: "views:[0-3]"},
			To:      config.To{Database: "main", Table: "articles", Key: []string{"id"}},
			Columns: map[string]config.Column{"id": {From: "$field"}, "views": {From: "$value", Op: "add"}},
		}}},
	}.WithDefaults()
	core, logs := recorder.New(zapcore.WarnLevel)
	f := NewFirstCheck(c, zap.New(core))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	f.Run(gone)
	if logs.Len() != 0 || f.over {
		t.Errorf("a term that ended at once has told %d findings", logs.Len())
	}
	f.Run(t.Context())
	told := logs.Len()
	f.Run(t.Context())
	if told == 0 || logs.Len() != told {
		t.Errorf("told %d findings, then %d", told, logs.Len())
	}
}
