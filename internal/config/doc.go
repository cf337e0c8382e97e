// Package config is baton's configuration: one YAML file, overlaid by
// environment variables and flags.
//
//	file ── Load ──► Config ── Overlay(environment) ── Overlay(flags) ── WithDefaults ── Validate
//
// Read does all of it and is what a command calls. It answers with every problem
// at once, each at its place, so that an operator fixes a file in one go:
//
//	baton.yaml:12:5: jobs[1].schedule: ...
//	--ttl: election.ttl: ...
//
// Nothing is guessed and nothing is skipped: a key that this version does not
// know is an error, and so is one that a later version may know. Values of secret
// fields never appear in a problem, in Show or in Hash.
//
// The package knows neither Redis nor SQL nor cron: what only the owner of a
// language can check (a schedule, a key pattern) comes in through Checks.
package config
