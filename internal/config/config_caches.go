package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/sandbox"
)

// toolCaches are the folders in which common tools keep what they can make or
// fetch again, each with the variable that moves it. Only that of gradle holds
// settings of its tool as well: what a call changes of them holds for calls alone.
func toolCaches() []sandbox.Cache {
	return []sandbox.Cache{
		{Path: "~/.cache", Env: "XDG_CACHE_HOME"}, // go build, pip, uv, yarn and many others
		{Path: "~/go/pkg/mod", Env: "GOMODCACHE"},
		{Path: "~/.npm", Env: "npm_config_cache"},
		{Path: "~/.cargo/registry", Env: "CARGO_HOME"},
		{Path: "~/.cargo/git"},
		{Path: "~/.gradle", Env: "GRADLE_USER_HOME"},
		{Path: "~/.m2/repository"},
	}
}

// caches returns the tool caches of calls. Defaults that do not fit the machine are left out.
func (l *loader) caches(c *Config, list []scalar) []sandbox.Cache {
	var known, out []sandbox.Cache
	for _, cache := range toolCaches() {
		if path := l.expand(cache.Path); path != "" {
			known = append(known, sandbox.Cache{Path: canonical(path), Env: cache.Env})
		}
	}
	if list == nil {
		return slices.DeleteFunc(known, func(k sandbox.Cache) bool { return l.unfit(c, k.Path) != "" })
	}
	for i, s := range list {
		if !s.set {
			continue
		}
		key := fmt.Sprintf("sandbox.caches[%d]", i)
		cache := sandbox.Cache{Path: canonical(l.absolute(s))}
		k := slices.IndexFunc(known, func(k sandbox.Cache) bool { return k.Path == cache.Path })
		if k >= 0 {
			cache.Env = known[k].Env
		}
		if why := l.unfit(c, cache.Path); why != "" {
			l.fail(s, "%s cannot be %s: %s", key, cache.Path, why)
			continue
		}
		if _, err := os.Stat(cache.Path); errors.Is(err, fs.ErrNotExist) && k < 0 {
			l.warn("%s: %s does not exist: calls cannot write there", key, cache.Path)
		}
		out = append(out, cache)
	}
	return out
}

// unfit tells why a folder cannot be a cache. What one call leaves in a cache,
// later ones find: no program that a command's name may mean may come from there,
// since its policy was made for the machine's program.
func (l *loader) unfit(c *Config, path string) string {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return "it is not a folder"
	}
	if path == "/" || l.home != "" && paths.Within(canonical(l.home), path) {
		return "it holds your home; name the folders of the tools"
	}
	if c.StateDir != "" && (paths.Within(c.StateDir, path) || paths.Within(path, c.StateDir)) {
		return "the state directory " + c.StateDir + " and a cache must lie apart"
	}
	for _, dir := range filepath.SplitList(l.getenv("PATH")) {
		if filepath.IsAbs(dir) && paths.Within(canonical(dir), path) {
			return dir + " is in PATH: a call could change what later commands run"
		}
	}
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/etc", "/proc", "/sys", "/dev", "/boot"} {
		if paths.Within(path, dir) || paths.Within(canonical(dir), path) {
			return "it belongs to the system"
		}
	}
	return ""
}
