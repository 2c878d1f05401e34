package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/reach"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/caches"
	"github.com/toold/toold/sandbox/cgroup"
	"github.com/toold/toold/sandbox/launch"
	"github.com/toold/toold/sandbox/protect"
)

func confinementFindings(ctx context.Context) []Finding {
	var list []Finding
	for _, f := range launch.Probe(ctx) {
		list = append(list, Finding{Name: f.Name, OK: f.OK, Is: cmp.Or(f.Why, f.Detail), Fix: f.Fix})
	}
	return list
}

func groupsFinding() Finding {
	f := Finding{Name: "control groups", OK: true}
	groups, err := cgroup.Open()
	switch {
	case err != nil && os.Getuid() == 0:
		f.Is = fmt.Sprintf("none: %v; before Linux 6.14 nothing else bounds how many processes a call of root has", err)
	case err != nil:
		f.Is = fmt.Sprintf("none, and the limits of a process hold instead: %v", err)
	case groups.Memory():
		f.Is = "each call has one below " + groups.Dir() + ", which bounds its processes and its memory"
	default:
		f.Is = "each call has one below " + groups.Dir() + ", which bounds its processes; memory is summed up ten times a second"
	}
	groups.Close()
	return f
}

// tierFinding reports how this machine confines calls, and completes the profile in cfg.
func tierFinding(ctx context.Context, cfg *config.Config) Finding {
	groups, _ := cgroup.Open() // groupsFinding reports the error
	defer groups.Close()
	cfg.Sandbox.Groups = groups
	profile, held, err := launch.Choose(ctx, cfg.Sandbox, cfg.Lowest)
	cfg.Sandbox = profile
	cfg.Sandbox.Groups = nil
	if err != nil {
		return Finding{Name: "sandbox", Is: err.Error(), Fix: "until then no command runs"}
	}
	wanted := profile.Tier == sandbox.TierBwrap && profile.Launcher == "bwrap"
	f := Finding{Name: "sandbox", OK: held.Degraded == "" || wanted, Is: describe.Sandbox(held)}
	if held.Degraded != "" {
		f.Is += "; " + held.Degraded
	}
	return f
}

func terminalFinding(cfg config.Config) Finding {
	err := executor.Probe()
	if err != nil && cfg.Terminal == executor.Off.String() {
		return Finding{Name: "pseudo-terminals", OK: true, Is: "none, and terminal: off needs none"}
	}
	if err != nil {
		return Finding{Name: "pseudo-terminals", Is: err.Error(), Fix: "mount -t devpts devpts /dev/pts"}
	}
	return Finding{Name: "pseudo-terminals", OK: true}
}

func warmFinding(ctx context.Context, d reach.Daemon, cfg config.Config) Finding {
	f := Finding{Name: "warm shells", OK: true, Is: fmt.Sprintf("%d wait for the next commands", cfg.WarmShells)}
	reuses, err := executor.ProbePool(ctx, daemon.Command(cfg))
	switch {
	case errors.Is(err, sandbox.ErrUnavailable):
		f.Is = "none without the sandbox"
	case err != nil:
		f.Is = fmt.Sprintf("none: %v; each command starts its own shell", err)
	case cfg.WarmShells == 0:
		f.Is = "none are wanted (warm_shells: 0)"
	}
	if err == nil && reuses {
		f.Is += "; a sandbox holds several commands in turn"
	} else if err == nil {
		f.Is += "; each command gets a sandbox of its own, which takes longer: chroot(2), pivot_root(2) or clone(2) are refused or the profile has the network"
	}
	counts, _ := d.Request(ctx, "observer", http.MethodGet, "/metrics") // no daemon runs after an error
	if _, n, _ := strings.Cut(string(counts), "\ntoold_sandbox_failures_total "); n != "" && n[0] != '0' {
		n, _, _ = strings.Cut(n, "\n")
		f.Is += fmt.Sprintf("; the running daemon counts %s failures of warm shells and of processes that open files, which slow calls down; its log has the reasons", n)
	}
	return f
}

func cacheFinding(ctx context.Context, cfg config.Config) Finding {
	f := Finding{Name: "tool caches", OK: true}
	if cfg.Sandbox.Tier == sandbox.TierC {
		f.Is = "none in tier C"
		return f
	}
	if !cfg.Caching() {
		f.Is = "none: sandbox.caches is empty, or no call may have the profile workspace-write"
		return f
	}
	err := os.MkdirAll(cfg.StateDir, 0o700)
	var store string
	if err == nil {
		store, err = os.MkdirTemp(cfg.StateDir, "doctor-caches-")
	}
	if err != nil {
		return Finding{Name: f.Name, Is: err.Error(), Fix: "choose another state directory with --state-dir"}
	}
	defer os.RemoveAll(store)
	set, err := caches.Open(ctx, launch.Overlays, store, cfg.Caches)
	if err != nil {
		return Finding{Name: f.Name, Is: err.Error(), Fix: "correct what is named, or do without: sandbox.caches: []"}
	}
	defer set.Close()
	if daemon.CachesUnavailable(cfg.Sandbox, set) != nil {
		return Finding{Name: f.Name, Is: "none without the sandbox"}
	}
	f.Is = "what calls change goes to " + cfg.CacheStore()
	if stores, err := caches.Stores(cfg.CacheDir()); err == nil && len(stores) > 0 {
		total := int64(0)
		for _, s := range stores {
			total += s.Bytes
		}
		f.Is += fmt.Sprintf("; all changes of calls to tool caches take %s", describe.Size(total))
	}
	if cfg.Sandbox.Tier == sandbox.TierBwrap {
		f.Is += "; calls see nothing else there in tier A-bwrap"
	}
	problems := set.Problems()
	for _, path := range slices.Sorted(maps.Keys(problems)) {
		f.Is += fmt.Sprintf("; of %s calls see only what they have put there: %v", path, problems[path])
	}
	if env := set.Env(); len(env) > 0 {
		f.Is += "; not on this machine, so kept by variable: " + strings.Join(env, " ")
	}
	return f
}

func watchFinding(cfg config.Config) Finding {
	f := Finding{Name: "protected names", OK: true}
	if !cfg.Protected() {
		f.Is = "not watched for: sandbox.protect is empty, or calls can write nothing"
		return f
	}
	directories, why, unseen := protect.Survey(daemon.Protection(cfg))
	f.Is, f.OK = fmt.Sprintf("%d directories to watch", directories), !unseen
	if why != "" {
		f.Is += "; " + why
		f.Fix = fmt.Sprintf("sudo sysctl -w fs.inotify.max_user_watches=%d, or work in a smaller directory", 3*directories)
	}
	return f
}

// apparmorSetting is 1 where user namespaces need an AppArmor profile.
const apparmorSetting = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"

func apparmorFindings() []Finding {
	restricted, err := os.ReadFile(apparmorSetting)
	if err != nil || strings.TrimSpace(string(restricted)) != "1" || os.Getuid() == 0 {
		return nil
	}
	exe, err := os.Executable()
	if err != nil {
		return nil
	}
	return []Finding{{
		Name: "AppArmor", Is: "it gives the rights in user namespaces only to programs with a profile; toold may have one, and does without where bwrap has one",
		Fix: apparmorCommand(exe),
	}}
}

// AppArmorProfile returns lines of a profile that allows a program to use user namespaces (apparmor.d(5), AppArmor
// 4).
func AppArmorProfile(exe string) []string {
	path := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`, "^", `\^`).Replace(exe)
	return []string{"abi <abi/4.0>,", "include <tunables/global>", fmt.Sprintf(`profile toold "%s" flags=(unconfined) { userns, }`, path)}
}

func apparmorCommand(exe string) string {
	return fmt.Sprintf("printf '%%s\\n' %s | sudo tee /etc/apparmor.d/toold && sudo apparmor_parser -r /etc/apparmor.d/toold", describe.Quote(AppArmorProfile(exe), true))
}
