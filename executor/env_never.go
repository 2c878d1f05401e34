package executor

import (
	"maps"
	"slices"
	"strings"
)

// NeverPass returns the names in o.Pass and o.Set that BaseEnv rejects.
func NeverPass(o EnvOptions) []string {
	names := slices.DeleteFunc(slices.Clone(o.Pass), func(name string) bool { return !never(name) && !isDaemons(name) })
	for _, name := range slices.Sorted(maps.Keys(o.Set)) {
		if never(name) {
			names = append(names, name)
		}
	}
	return names
}

// isDaemons reports whether a variable configures the daemon. Set may contain such a name.
func isDaemons(name string) bool { return strings.HasPrefix(name, "TOOLD_") }

func never(name string) bool {
	starts := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	return slices.ContainsFunc(neverPrefixes, starts) || slices.Contains(neverNames, name)
}

var neverPrefixes = []string{"BASH_FUNC_", "LD_", "DYLD_", "GIT_CONFIG", "AWS_CONTAINER_"}

var neverNames = []string{
	"TOOLD_CALL",

	// They give a shell or git code, a repository or a search path.
	"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4", "IFS", "CDPATH", "GLOBIGNORE",
	"BASH_XTRACEFD", "BASH_LOADABLES_PATH",
	"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX",
	"GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CEILING_DIRECTORIES",
	"GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "GIT_EXTERNAL_DIFF",
	"GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_PROXY_COMMAND", "GIT_SEQUENCE_EDITOR",
	"GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE", "GIT_ATTR_SOURCE",

	// They give access to a cloud account. A command that needs one reads a file, which a policy can allow.
	"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE",
	"AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_PASSWORD", "AZURE_FEDERATED_TOKEN_FILE",
	"AZURE_STORAGE_KEY", "AZURE_STORAGE_CONNECTION_STRING", "ARM_CLIENT_SECRET", "ARM_ACCESS_KEY",
	"GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CREDENTIALS", "GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN",
	"ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET", "ALIBABA_CLOUD_SECURITY_TOKEN",
	"DIGITALOCEAN_ACCESS_TOKEN", "DIGITALOCEAN_TOKEN", "HCLOUD_TOKEN", "LINODE_TOKEN", "CLOUDFLARE_API_TOKEN", "CLOUDFLARE_API_KEY",
	"OS_PASSWORD", "OS_TOKEN", "VAULT_TOKEN",
}
