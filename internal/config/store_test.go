package config

import (
	"strings"
	"testing"
)

// flushing returns a configuration with the given stores, and with a job for each source.
func flushing(stores string, sources ...string) string {
	text := "stores: {" + stores + "}\ndatabases: {main: {driver: sqlite, dsn: x.db}}\njobs:\n"
	for i, from := range sources {
		text += "- {name: j" + string(rune('a'+i)) + `, schedule: "@every 5s", flush: {from: {` + from + "}, " +
			"to: {database: main, table: t, key: [id]}, columns: {id: $field, n: $value}}}\n"
	}
	return text
}

func TestBadStoresAreReportedAtTheirPlaceWithTheRemedy(t *testing.T) {
	const keep = "keep one of them: url for one server, sentinel for one with replicas, cluster for a Redis Cluster"
	const views = "type: counters, key: views"
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", flushing(`a: {}`), "1:10: stores.a.url: required; for example redis://127.0.0.1:6379/0"},
		{"name of redis", flushing(`redis: {url: "redis://h"}`),
			"1:10: stores.redis: the Redis that has the lock is called redis already; choose another name"},
		{"name", flushing(`A.b: {url: "redis://h"}`), "1:10: stores.A.b: use lower-case letters, digits, dashes and underscores, at most 63 characters"},
		{"quorum", flushing(`a: {url: "redis://h", quorum: []}`),
			"1:32: stores.a.quorum: unknown key; choose one of url, username, password_file, password, database, sentinel, cluster, tls"},
		{"url", flushing(`a: {url: "http://h"}`), "1:14: stores.a.url: " + wantURL},
		{"Sentinel as a URL", flushing(`a: {url: "redis+sentinel://h:26379/m"}`),
			"1:14: stores.a.url: a URL is one server; remove it, and write the Sentinels under stores.a.sentinel"},
		{"two deployments", flushing(`a: {url: "redis://h", cluster: ["b:1"]}`), "1:32: stores.a.cluster: stores.a.url is set too; " + keep},
		{"password twice", flushing(`a: {url: "redis://:x@h", password: y}`), "1:35: stores.a.password: stores.a.url has a password too; keep one of them"},
		{"tls without encryption", flushing(`a: {url: "redis://h", tls: {}}`),
			"1:32: stores.a.tls: stores.a.url is not encrypted; write rediss:// there, or remove tls"},
		{"sentinel", flushing(`a: {sentinel: {master: m, addresses: [b]}}`),
			"1:48: stores.a.sentinel.addresses[0]: write host:port, for example 10.0.0.1:26379"},

		{"unknown store", flushing(`shop: {url: "redis://h"}`, "store: shp, "+views),
			`4:52: jobs[0].flush.from.store: "shp" is not under stores; did you mean shop?`},
		{"no stores", flushing(``, "store: shop, "+views), `4:52: jobs[0].flush.from.store: "shop" is not under stores, which is empty`},
		{"redis as a store", flushing(`a: {url: "redis://h"}`, "store: redis, "+views),
			"4:52: jobs[0].flush.from.store: redis is where the key is without this; remove it"},
		{"a key twice in a store", flushing(`a: {url: "redis://h"}`, "store: a, "+views, "store: a, "+views),
			`5:78: jobs[1].flush.from.key: "views" is flushed by jobs[0] already; a key belongs to one job`},
		{"a key twice in one Redis under two names", flushing(`a: {url: "redis://h"}, b: {url: "rediss://x:y@H:6379/0"}`, "store: a, "+views, "store: b, "+views),
			`5:78: jobs[1].flush.from.key: "views" is flushed by jobs[0] already; a key belongs to one job`},
		{"a key twice in the Redis of the lock", flushing(`a: {url: "redis://127.0.0.1"}`, views, "store: a, "+views),
			`5:78: jobs[1].flush.from.key: "views" is flushed by jobs[0] already; a key belongs to one job`},
	} {
		t.Run(tc.name, func(t *testing.T) { wantProblems(t, tc.text, tc.want) })
	}
}

func TestAKeyInTwoStoresIsTwoJobs(t *testing.T) {
	c, err := read(t, flushing(`a: {url: "redis://h"}, b: {url: "redis://h/1"}, c: {url: "redis://h:1"}, `+
		`d: {sentinel: {master: m, addresses: ["h:1"]}}, e: {sentinel: {master: n, addresses: ["h:1"]}}, f: {cluster: ["i:1"]}, g: {url: "unix:///h"}`,
		"type: counters, key: k", "store: a, type: counters, key: k", "store: b, type: counters, key: k", "store: c, type: counters, key: k",
		"store: d, type: counters, key: k", "store: e, type: counters, key: k", "store: g, type: counters, key: k"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]string{}
	for _, r := range c.AllStores() {
		if other, twice := places[r.Place()]; twice {
			t.Errorf("%q and %q are one place: %s", r.StoreName, other, r.Place())
		}
		places[r.Place()] = r.StoreName
	}
	if got := c.StoreOf(c.Jobs[2]); got.URL != "redis://h/1" || got.At("url") != "stores.b.url" {
		t.Errorf("the store of %s: %+v", c.Jobs[2].Name, got)
	}
	if got := c.StoreOf(c.Jobs[0]); got.At("url") != "redis.url" {
		t.Errorf("the store of a job without one: %+v", got)
	}
}

func TestSecretsOfStoresAreHiddenAndReadBack(t *testing.T) {
	env := map[string]string{"PW": planted, "CREDENTIALS_DIRECTORY": "/creds"}
	c, err := read(t, flushing(`a: {url: "redis://u:`+planted+`@h/2"}, b: {sentinel: {master: m, addresses: ["h:1"], password: "${PW}"}, password: "${PW}"}, `+
		`c: {url: "rediss://h", password_file: "${CREDENTIALS_DIRECTORY}/c", tls: {ca_file: /ca}}`), env, nil)
	if err != nil {
		t.Fatal(err)
	}
	if shown := string(Show(c)); strings.Contains(shown, planted) || !strings.Contains(shown, "redis://:***@h/2") {
		t.Errorf("shown:\n%s", shown)
	}
	again, err := read(t, string(Encode(c)), nil, nil)
	if err != nil || string(Encode(again)) != string(Encode(c)) {
		t.Errorf("written and read back: %v\n%s", err, Encode(c))
	}
	var keys []string
	for _, f := range c.Files() {
		keys = append(keys, f.Key+" "+f.Path)
	}
	if got, want := strings.Join(keys, "; "), "stores.c.password_file /creds/c; stores.c.tls.ca_file /ca"; got != want {
		t.Errorf("files %s, want %s", got, want)
	}
	if _, err := c.Store("c").Password(); err == nil || !strings.HasPrefix(err.Error(), "stores.c.password_file: ") {
		t.Errorf("a password file that is missing: %v", err)
	}
	if pw, err := c.Store("b").SentinelPassword(); err != nil || pw != planted {
		t.Errorf("the Sentinels' password: %q %v", pw, err)
	}
}

func TestAnotherServerUnderAnOldNameTakesARestart(t *testing.T) {
	of := func(stores, store string) Config {
		c, err := read(t, flushing(stores, "store: "+store+", type: counters, key: k"), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	old := of(`a: {url: "redis://h"}, b: {url: "redis://i"}`, "a")
	for name, tc := range map[string]struct {
		c    Config
		want string
	}{
		"another server":                {of(`a: {url: "redis://g"}`, "a"), "stores.a: the store is another server now"},
		"another database":              {of(`a: {url: "redis://h/1"}`, "a"), "stores.a: the store is another server now"},
		"names that change":             {of(`a: {url: "redis://i"}, b: {url: "redis://h"}`, "b"), "stores.a: the store is another server now"},
		"another user":                  {of(`a: {url: "redis://u:p@h:6379/0"}`, "a"), ""},
		"a store that no job reads":     {of(`a: {url: "redis://h"}, b: {url: "redis://j"}`, "a"), ""},
		"a job that goes elsewhere":     {of(`a: {url: "redis://h"}, c: {url: "redis://g"}`, "c"), ""},
		"a store that is gone, unused":  {of(`a: {url: "redis://h"}`, "a"), ""},
		"a store that is gone with job": {of(`c: {url: "redis://g"}`, "c"), ""},
	} {
		err := tc.c.Reloadable(old)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v; want %q", name, err, tc.want)
		}
	}
}
