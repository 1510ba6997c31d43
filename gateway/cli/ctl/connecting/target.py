"""The broker of a verb: from options first, then a named profile, then the environment, then the default profile."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.cli.ctl.address import ApiAddress
from gateway.cli.ctl.connecting.credentials import ApiCredentials
from gateway.cli.ctl.connecting.profiles import Profile, find_profile

DEFAULT_URL: Final = "http://127.0.0.1:15672"
DEFAULT_USER: Final = "guest"
DEFAULT_PASSWORD: Final = "guest"

ENVIRONMENT: Final = {
    "url": "GATEWAYCTL_URL",
    "username": "GATEWAYCTL_USERNAME",
    "password": "GATEWAYCTL_PASSWORD",
    "token": "GATEWAYCTL_TOKEN",
    "ca": "GATEWAYCTL_CACERT",
}
"""Environment variables that replace options."""

PROFILE_VARIABLE: Final = "GATEWAYCTL_PROFILE"


@dataclass(frozen=True, slots=True)
class ApiTarget:
    """A broker, the login, the file of trusted certificates, and the virtual host of the profile."""

    address: ApiAddress
    credentials: ApiCredentials
    ca: str | None
    vhost: str | None


def target_of(options: Mapping[str, str | None], profile: str | None) -> ApiTarget:
    """Return the broker for the options ``url``, ``username``, ``password``, ``token`` and ``ca``.

    A named profile is used instead of the other variables of the environment. An address of the command line or of the
    environment gets the credentials of a profile only if the command line names both.

    :raises CommandFailed: if the profile or the URL is wrong.
    """
    named = profile or (None if options.get("url") else os.environ.get(PROFILE_VARIABLE))
    environment = {} if named else os.environ
    given = {name: options.get(name) or environment.get(variable) for name, variable in ENVIRONMENT.items()}
    found = find_profile(named) if named or not given["url"] else Profile()
    address = ApiAddress.parse(given["url"] or found.url or DEFAULT_URL)
    return ApiTarget(address, _credentials(given, address, found), given["ca"] or found.ca or None, found.vhost or None)


def login_at(address: ApiAddress, options: Mapping[str, str | None]) -> ApiCredentials:
    """Return the login at another broker than that of the environment and the profile.

    That of the options ``username`` and ``password`` comes first, then that in the address, then that of ``guest``.
    """
    given = {name: options.get(name) for name in ENVIRONMENT}
    return _credentials(given, address, Profile())


def _credentials(given: Mapping[str, str | None], address: ApiAddress, profile: Profile) -> ApiCredentials:
    has_login = bool(given["username"] or given["password"] or address.user)
    token = given["token"] or ("" if has_login else profile.token())
    if token:
        return ApiCredentials.of_token(token)
    user = given["username"] or address.user or profile.user or DEFAULT_USER
    password = given["password"] or address.password
    if not password:
        is_of_profile = user == (profile.user or DEFAULT_USER)
        password = (profile.secret() if is_of_profile else "") or DEFAULT_PASSWORD
    return ApiCredentials.of_password(user, password)
