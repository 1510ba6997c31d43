/** The view library: Preact's functions and the `html` template tag. Interpolated values are always text. */
export {
  html, render, h, createContext, useContext, useState, useReducer, useEffect, useLayoutEffect, useRef, useMemo,
  useCallback,
} from "../vendor/htm-preact/standalone.module.js";
