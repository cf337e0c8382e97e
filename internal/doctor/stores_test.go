package doctor

import (
	"fmt"
	"strings"
	"testing"

	"baton/internal/config"
	"baton/internal/flush/source/spec"
	"baton/internal/redisconn"
)

func TestStoresForNothingAndStoresTwiceAreFound(t *testing.T) {
	c := config.Default()
	c.Redis.URL = "redis://h"
	c.Stores = map[string]config.Store{
		"same": {URL: "redis://u:p@h:6379/0"}, "other": {URL: "redis://h/1"}, "twice": {URL: "redis://H/1"}, "unused": {Cluster: []string{"c:1"}},
	}
	for _, store := range []string{"same", "other", "twice"} {
		c.Jobs = append(c.Jobs, config.Job{Name: store, Flush: config.Flush{From: config.From{Type: spec.Counters, Store: store}}})
	}
	found := fmt.Sprint(examineConfig(c.WithDefaults(), false))
	for _, want := range []string{`no job reads the store "unused"`, "stores.same is the same Redis as redis", "stores.twice is the same Redis as stores.other"} {
		if !strings.Contains(found, want) {
			t.Errorf("no %q in %s", want, found)
		}
	}
	if strings.Contains(found, `no job reads the store "other"`) || strings.Contains(found, "stores.other is") {
		t.Errorf("a store that is right is found fault with: %s", found)
	}
	if found := examineConfig(c.WithDefaults(), true); strings.Contains(fmt.Sprint(found), "store") {
		t.Errorf("by a node, which knows the jobs of one lock: %s", found)
	}
}

// A store with Sentinels or a Cluster has no url that could be corrected.
func TestRemedyNamesTheSectionOfTheStore(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Redis.URL = "redis://127.0.0.1:1"
	c.Stores = map[string]config.Store{
		"shop": {Cluster: []string{"127.0.0.1:1"}}, "sale": {Sentinel: &config.Sentinel{Master: "m", Addresses: []string{"127.0.0.1:1"}}},
	}
	for store := range c.Stores {
		c.Jobs = append(c.Jobs, config.Job{Name: store, Flush: config.Flush{From: config.From{Type: spec.Counters, Key: "k", Store: store}}})
	}
	c = c.WithDefaults()
	all := map[string]config.Redis{}
	for _, r := range c.AllStores() {
		all[r.At("")] = r
	}
	for _, section := range []string{"redis", "stores.shop", "stores.sale"} {
		of := c
		of.Redis = all[section]
		o := redisconn.PreflightOptions{Subject: section, Section: of.Redis.At(""), Store: section != "redis"}
		found, want := examineStore(t.Context(), of, o, nil), "start it, or correct "+section+" in the configuration"
		if len(found) != 1 || found[0].Remedy != want || strings.Contains(fmt.Sprint(found), "redis.url") {
			t.Errorf("%s: %+v", section, found)
		}
	}
}
