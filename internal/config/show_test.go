package config

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const planted = "pl4nted-s3cret"

func TestShowReadsBackAsTheSameConfiguration(t *testing.T) {
	c, err := read(t, good, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := read(t, string(Show(c)), nil, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, Show(c))
	}
	c.places, again.places = nil, nil
	if diff := cmp.Diff(c, again, cmp.AllowUnexported(Config{})); diff != "" {
		t.Error(diff)
	}
	if Hash(c) != Hash(again) {
		t.Error("the hash changed")
	}
}

// TestEveryPolicyReadsBackAsItWas checks that Load reads back every setting that Encode writes.
func TestEveryPolicyReadsBackAsItWas(t *testing.T) {
	c, err := read(t, full, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := read(t, string(Encode(c)), map[string]string{"X": "no", "Y": "no"}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, Encode(c))
	}
	c.places, again.places = nil, nil
	if diff := cmp.Diff(c, again, cmp.AllowUnexported(Config{})); diff != "" {
		t.Error(diff)
	}
	j := reflect.ValueOf(c.Jobs[0])
	for _, f := range reflect.VisibleFields(j.Type()) {
		if f.Name != "Flush" && j.FieldByIndex(f.Index).IsZero() {
			t.Errorf("%s is not set, so it was not tried", f.Name)
		}
	}
	if Hash(c) != Hash(again) {
		t.Error("the hash changed")
	}
}

func TestShowHidesWhereHooksAreAndWhatVariablesHold(t *testing.T) {
	c, err := read(t, full, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	shown := string(Show(c))
	if strings.Contains(shown, planted) || strings.Count(shown, hidden) != 4 {
		t.Errorf("%d are hidden:\n%s", strings.Count(shown, hidden), shown)
	}
	for _, want := range []string{"url: https://hooks.example.com/***", "url: https://ping.example.com/***", "url_file: /etc/${X}/ping", "LEVEL:", "PRICE: $5", "TOKEN: /etc/${X}/token"} {
		if !strings.Contains(strings.ReplaceAll(shown, "$${", "${"), want) {
			t.Errorf("no %s in\n%s", want, shown)
		}
	}
	if c.Notify[0].Webhook.URL == hidden || c.Jobs[0].Env["API_TOKEN"] != planted {
		t.Error("Show changed its argument")
	}
	for _, name := range []string{"PASSWORD", "pgpass", "SECRET_KEY", "AWS_ACCESS_KEY_ID", "token", "DSN", "DATABASE_URL", "HTTP_AUTH", "CREDENTIALS", "PGPASSWORD", "dbPassword", "API-KEY", "APIKEY", "AUTHTOKEN"} {
		c.Jobs[0].Env = map[string]string{name: planted}
		if strings.Contains(string(Show(c)), planted) {
			t.Errorf("the value of %s is shown", name)
		}
	}
	for _, dsn := range []string{"redis://u:" + planted + "@h/0", "u:" + planted + "@tcp(h)/db", "host=h password=" + planted} {
		c.Jobs[0].Env = map[string]string{"STORE": dsn}
		if strings.Contains(string(Show(c)), planted) {
			t.Errorf("the password in %s is shown", dsn)
		}
	}
}

func TestEncodeKeepsSecretsAndDollarSigns(t *testing.T) {
	c := Default()
	c.Node.ID = "n"
	c.Redis.URL = "redis://:" + planted + "@h:1"
	c.Databases = map[string]Database{"main": {Driver: "mysql", DSNInline: "u:$${X}${Y}$@/db"}}
	env := map[string]string{"X": "no", "Y": "no"}
	again, err := read(t, string(Encode(c)), env, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again.Redis.URL != c.Redis.URL || again.Databases["main"] != c.Databases["main"] {
		t.Errorf("%+v", again)
	}
	// These settings are not valid together, but every field with an expanded text must be written so that it can be read back.
	c.Redis = Redis{
		URL: "redis://${X}", PasswordFile: "${X}/a", PasswordInline: planted + "${X}", Cluster: []string{"${X}:1"}, Quorum: []string{"redis://${X}", "b"},
		Sentinel: &Sentinel{Master: "${X}", Addresses: []string{"${Y}:1"}, PasswordFile: "${X}/b", PasswordInline: planted + "${Y}"},
		TLS:      &TLS{CAFile: "${X}/c", CertFile: "${X}/d", KeyFile: "${X}/e", ServerName: "${X}"},
	}
	again, err = parse("f.yaml", Encode(c), lookup(env))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Redis, again.Redis); diff != "" {
		t.Error(diff)
	}
	if c.Databases["main"].DSNInline != "u:$${X}${Y}$@/db" {
		t.Error("Encode changed its argument")
	}
}

func TestShowHidesSecrets(t *testing.T) {
	for _, url := range []string{
		"redis://:" + planted + "@h:1/2", "redis://joe:" + planted + "@h", "redis://" + planted + "@h", "redis://:" + planted + "@%zz",
	} {
		c := Default()
		c.Redis.URL = url
		c.Databases = map[string]Database{"main": {Driver: "postgres", DSNInline: "postgres://u:" + planted + "@h/db"}}
		shown := string(Show(c))
		if strings.Contains(shown, planted) || strings.Count(shown, "***") != 2 {
			t.Errorf("%s", shown)
		}
		if c.Redis.URL != url || c.Databases["main"].DSNInline == hidden {
			t.Error("Show changed its argument")
		}
	}
}

func TestShowHidesEveryPasswordOfRedis(t *testing.T) {
	c := Default()
	c.Redis = Redis{
		URL: "unix://u:" + planted + "@/s", PasswordInline: planted,
		Quorum:   []string{"redis://:" + planted + "@a", "redis://b", planted + "@c:%zz"},
		Sentinel: &Sentinel{PasswordInline: planted},
	}
	shown := string(Show(c))
	if strings.Contains(shown, planted) || strings.Count(shown, "***") != 5 || !strings.Contains(shown, "redis://b") {
		t.Errorf("%s", shown)
	}
	if c.Redis.Quorum[0] == hidden || c.Redis.Sentinel.PasswordInline != planted {
		t.Error("Show changed its argument")
	}
}

func TestProblemsNeverQuoteSecrets(t *testing.T) {
	for _, text := range []string{
		"redis: {url: \"http://:" + planted + "@h\"}",
		"redis: {url: \"redis://:" + planted + "@%zz\"}",
		"redis: {url: \"redis://:" + planted + "@h/x?y#z\", password_file: x, username: u}",
		"redis: {url: [\"redis://:" + planted + "@h\"]}",
		"redis: {url: \"${X}" + planted + "\"}",
		"redis: redis://:" + planted + "@h",
		"redis:\n  url: redis://:" + planted + "@h\n foo: [",
		"redis: {url: \"unix://:" + planted + "@h/s\"}",
		"redis: {quorum: [\"redis://:" + planted + "@h\", \"redis://:" + planted + "@h\", \"redis://:" + planted + "@%zz\"]}",
		"redis: {cluster: [\"redis://:" + planted + "@h\", \"" + planted + "@h:1\"]}",
		"redis: {sentinel: {master: m, addresses: [\"" + planted + "\", \"" + planted + "@h\"], password: " + planted + ", password_file: x}}",
		"redis: {sentinel: redis://:" + planted + "@h}",
		"redis: {password: " + planted + ", password_file: x}",
		"redis: {password: [" + planted + "], database: " + planted + ", tls: " + planted + "}",
		"node: {priority: " + planted + ", candidate: " + planted + "}",
		"redis:\n  url: \"redis://:" + planted + "@h\n",
		"databases: {m: {driver: sqlite, dsn: " + planted + ", dsn_file: x}}",
		"databases: {m: " + planted + "}",
		"databases: [" + planted + "]",
		"jobs: " + planted,
		"notify: [{name: a, webhook: " + planted + "}, {name: b, webhook: {url: \"https://h/" + planted + "\", url_file: x}}]",
		"notify: [{name: a, webhook: \"https://" + planted + "@%zz\"}]",
		nightly("dead_mans_switch: "+planted, "env: {A-B: "+planted+", BATON_X: "+planted+", C: \""+planted+"${X}\"}"),
		another(nightly("dead_mans_switch: https://h/"+planted), "dead_mans_switch: https://h/"+planted),
		planted,
	} {
		_, err := read(t, text, nil, nil)
		if err == nil || strings.Contains(err.Error(), planted) {
			t.Errorf("%s\n→ %v", text, err)
		}
	}
}

func TestHashCoversWhatJobsDoAndNothingElse(t *testing.T) {
	base, err := read(t, good, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		text string
		same bool
	}{
		"node":        {strings.Replace(good, "id: db1", "id: db2", 1), true},
		"dsn":         {strings.Replace(good, "/etc/baton", "/run", 1), true},
		"election":    {good + "election: {ttl: 20s}\n", true},
		"priority":    {strings.Replace(good, "id: db1", "id: db1, priority: 9, candidate: false", 1), true},
		"redis":       {good + "redis: {cluster: [\"a:1\"], tls: {}}\n", true},
		"schedule":    {strings.Replace(good, "@every 5s", "@every 6s", 1), false},
		"driver":      {strings.Replace(good, "driver: postgres", "driver: mysql", 1), false},
		"default":     {good + "defaults: {timeout: 2h}\n", false},
		"column":      {strings.Replace(good, "missing: error", "missing: null", 1), false},
		"written out": {strings.Replace(good, "views: $value", "views: {from: $value, op: add}", 1), true},
	} {
		c, err := read(t, tc.text, nil, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		if (Hash(c) == Hash(base)) != tc.same {
			t.Errorf("%s: %s and %s", name, Hash(base), Hash(c))
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheDefinitionOfAJobHasNoSecret(t *testing.T) {
	j := Job{Name: "report", Schedule: "@daily", Env: map[string]string{"API_TOKEN": "tok-Zulu", "LANG": "C"},
		Command: []string{"/usr/bin/report", "--password", "pw-Yankee", "--api-token=tk-Xray", "postgres://app:pw-Whisky@db/x",
			"PGPASSWORD=pw-Victor", "--yesterday"},
		DeadMansSwitch: &Webhook{URL: "https://hooks.example.com/uniform-id"}}
	shown := ShowJob(j)
	for _, secret := range []string{"Zulu", "Yankee", "Xray", "Whisky", "Victor", "uniform", "yesterday"} {
		if strings.Contains(shown, secret) {
			t.Errorf("it has %s:\n%s", secret, shown)
		}
	}
	for _, text := range []string{"- name: report", "@daily", "- /usr/bin/report", "LANG: C", "hooks.example.com"} {
		if !strings.Contains(shown, text) {
			t.Errorf("it lacks %q:\n%s", text, shown)
		}
	}
	if !strings.HasPrefix(shown, "  - name: report\n") || strings.Contains(shown, "{}") {
		t.Errorf("it is more than the job:\n%s", shown)
	}
	if j.Command[2] != "pw-Yankee" {
		t.Error("the job itself was changed")
	}
}
