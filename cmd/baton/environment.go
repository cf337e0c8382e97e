package main

import (
	"fmt"
	"strings"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/config"
	"baton/internal/trace"
)

// environmentHelp lists the environment variables that baton reads.
func environmentHelp() string {
	var b strings.Builder
	b.WriteString("Flags go over environment variables, these go over the configuration file.\n" +
		"An empty variable counts as not set.\n\n")
	row := func(variable, flag, path string) {
		b.WriteString(strings.TrimRight(fmt.Sprintf("  %-26s %-22s %s", variable, flag, path), " ") + "\n")
	}
	row("VARIABLE", "FLAG", "IN THE FILE")
	row(cmdline.ConfigEnv, "--config", "")
	row(cmdline.ServerEnv, "--server", "")
	row(cmdline.TokenFileEnv, "--token-file", "")
	row(cmdline.CaFileEnv, "--ca-file", "")
	row("NO_COLOR", "--color never", "")
	for _, s := range config.Settings() {
		row(s.Env, "--"+s.Flag, s.Path)
	}
	b.WriteString("\nHTTPS_PROXY, HTTP_PROXY and NO_PROXY hold for notifications, traces and\n--server.\n" +
		"\nOpenTelemetry's have baton run send traces. Those with OTLP in their name exist\n" +
		"for traces alone, too, and count more: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, ...\n\n")
	for _, v := range trace.Variables() {
		fmt.Fprintf(&b, "  %-38s %s\n", v.Name, v.Short)
	}
	return strings.TrimRight(b.String(), "\n")
}
