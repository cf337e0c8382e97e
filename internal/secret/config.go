package secret

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"baton/internal/config"
)

// Inline maps the paths of settings to the secrets that are written in the configuration itself. It leaves out the secrets that come
// from the environment.
func Inline(c config.Config) map[string]string {
	all := map[string]string{}
	ofURL := func(key, raw string) {
		// Use the text of the file, because url.Parse would decode it.
		_, rest, _ := strings.Cut(raw, "://")
		authority, _, _ := strings.Cut(rest, "/")
		user := authority[:max(strings.LastIndexByte(authority, '@'), 0)]
		if _, password, given := strings.Cut(user, ":"); given {
			all[key] = password
		}
	}
	for _, r := range c.AllStores() {
		all[r.At("password")] = r.PasswordInline
		ofURL(r.At("url"), r.URL)
		if r.Sentinel != nil {
			all[r.At("sentinel.password")] = r.Sentinel.PasswordInline
		}
	}
	for i, raw := range c.Redis.Quorum {
		ofURL(fmt.Sprintf("redis.quorum[%d]", i), raw)
	}
	for name, db := range c.Databases {
		if db.Driver != "sqlite" {
			all["databases."+name+".dsn"] = db.DSNInline
		}
	}
	hook := func(key string, w *config.Webhook) {
		if w == nil {
			return
		}
		if u, err := url.Parse(w.URL); err == nil {
			all[key] = strings.TrimPrefix(u.RequestURI(), "/") // the path of a webhook is a secret
		}
	}
	for _, n := range c.Notify {
		hook("webhook of notification "+n.Name, n.Webhook)
	}
	for _, j := range c.Jobs {
		hook("dead_mans_switch of job "+j.Name, j.DeadMansSwitch)
		for name, value := range j.Env {
			if config.HoldsSecret(name) || len(InVariable(name, value)) > 0 {
				all["env."+name+" of job "+j.Name] = value
			}
		}
	}
	return all
}

// Files returns the paths of the files that the configuration names and that contain secrets.
func Files(c config.Config) []string {
	var all []string
	for _, f := range c.Files() {
		if f.Kind != config.FileCertificates {
			all = append(all, f.Path)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
