package policy

import "strings"

// neutralEnv may be set for any command.
const neutralEnv = "LANG LANGUAGE LC_* TZ CI NODE_ENV DEBUG FORCE_COLOR NO_COLOR CLICOLOR CLICOLOR_FORCE COLUMNS LINES " +
	"RUST_BACKTRACE RUST_LOG PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE GOOS GOARCH CGO_ENABLED GOMAXPROCS VERBOSE TERM"

// dangerousEnv makes programs load code, find other programs, or speak to other
// hosts. No default covers it, only a rule that names it.
const dangerousEnv = "PATH LD_* DYLD_* BASH_ENV ENV BASHOPTS SHELLOPTS BASH_* IFS PS0 PS1 PS2 PS4 PROMPT_COMMAND CDPATH GLOBIGNORE EXECIGNORE " +
	"GIT_* SSH_* *PAGER* *EDITOR* VISUAL BROWSER LESS* MORE MANOPT MANPATH TAR_* GREP_OPTIONS RIPGREP_* PYTHON* NODE_OPTIONS NODE_PATH NODE_* PERL* RUBY* GEM_* BUNDLE_* " +
	"JAVA_* _JAVA* JDK_* CLASSPATH MAVEN_* GRADLE_* GOFLAGS GOENV GOPROXY GOPATH GOROOT GOTOOLCHAIN GOBIN GOMODCACHE GOCACHE GOSUMDB GONOSUMDB GOPRIVATE GOEXPERIMENT GODEBUG " +
	"CC CXX LD AR AS CPP CFLAGS CXXFLAGS LDFLAGS CGO_* MAKEFLAGS MAKEFILES MFLAGS SHELL CARGO* RUSTC* RUSTFLAGS RUSTUP* npm_* NPM_* YARN_* PNPM_* PIP_* UV_* VIRTUAL_ENV CONDA_* DOCKER_* " +
	"KUBE* AWS_* AZURE_* GOOGLE_* GCLOUD_* GCP_* *_TOKEN *_KEY *_SECRET *_PASSWORD *_proxy *_PROXY CURL_* WGETRC SSL_* REQUESTS_CA_BUNDLE OPENSSL_* HOME TMPDIR TMP TEMP XDG_* " +
	"TERMINFO* TERMCAP HOSTALIASES RESOLV_HOST_CONF LOCALDOMAIN RES_OPTIONS LOCPATH NLSPATH GCONV_PATH MALLOC_* GLIBC_* INPUTRC HISTFILE HISTFILESIZE HISTSIZE HISTCONTROL HISTTIMEFORMAT FIGNORE FPATH MAIL MAILPATH MAILCHECK TIMEFORMAT POSIXLY_CORRECT " +
	"COMMAND_NOT_FOUND* PKG_CONFIG* CMAKE_* AUTOMAKE* ACLOCAL* PHP* LUA_* LUA* R_* JULIA_* ERL_* ELIXIR* MIX_* HEX_* DOTNET_* COMPOSER_* DENO_* BUN_* JQ_* XMLLINT* LS_COLORS TOOLD_* SUDO_* VIM* EXINIT NVIM* EMACS* OLDPWD PWD"

var (
	neutralPatterns   = strings.Fields(neutralEnv)
	dangerousPatterns = strings.Fields(dangerousEnv)
)

// IsDangerousEnv reports whether setting the variable can change what programs
// run, load or contact, so that no default may cover it.
func IsDangerousEnv(name string) bool {
	return !matchesAny(neutralPatterns, name) && matchesAny(dangerousPatterns, name)
}

// matchesAny reports whether one of the patterns, in which * is any text, matches.
func matchesAny(patterns []string, s string) bool {
	for _, p := range patterns {
		if matchToken(p, s) {
			return true
		}
	}
	return false
}
